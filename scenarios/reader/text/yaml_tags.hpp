#pragma once

#include <string>
#include <vector>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

namespace ddpsim {

/// A tag that says of a value what it is not, or that means nothing in a file of ours.
struct TagProblem {
  YAML::Mark mark;  ///< where the tag begins
  std::string text;
};

/// Hears where the documents of a file begin, and its tags. A tag of YAML's core schema (`!!str`,
/// `!!int`, `!!float`, `!!bool`, `!!null`, `!!seq`, `!!map`) may stand before a value that it fits:
/// scalars are texts that we parse, so that it changes nothing. Throws TagProblem at any other.
/// Source: YAML 1.2.2, chapter 10.
class CheckedEvents : public YAML::EventHandler {
 public:
  std::vector<YAML::Mark> document_starts;

 private:
  void OnDocumentStart(const YAML::Mark& mark) override { document_starts.push_back(mark); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& text) override;
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override;
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override;
  void OnMapEnd() override {}
};

}  // namespace ddpsim
