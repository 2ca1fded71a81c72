#include "tools/study/catalogue_check.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/cluster/cluster_reader.hpp"
#include "scenarios/reader/cluster/device_reader.hpp"
#include "scenarios/reader/cluster/host_reader.hpp"
#include "scenarios/reader/cluster/link_reader.hpp"
#include "scenarios/reader/cluster/operations_reader.hpp"
#include "scenarios/reader/scenario/accuracy_reader.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/workload/workload_reader.hpp"

namespace ddpsim {
namespace {

/// What the catalogue holds, entry by entry.
class CatalogueReading {
 public:
  /// Reads all entries of a kind, each by itself; how many could be. Throws InputError where there
  /// are none.
  template <typename Read>
  std::size_t good_ones(std::string_view kind, Read read) {
    std::size_t good = 0;
    for (const std::string& name : catalogue_names(kind))
      if (could([&] { read(name); })) ++good;
    for (const std::string& file : misnamed_files(kind))
      could([&] { throw InputError(file + misnamed_problem); });
    return good;
  }

  /// Reads something. What is wrong with a file is kept once, however many entries name it.
  template <typename Read>
  bool could(Read read) try {
    ++tried_;
    read();
    return true;
  } catch (const InputError& problem) {
    ++failed_;
    if (std::find(wrong_.begin(), wrong_.end(), problem.what()) == wrong_.end())
      wrong_.emplace_back(problem.what());
    return false;
  }

  /// "1 of 122 entries cannot be read: FILE:3:1: ..."; "" where all can.
  std::string wrong() const {
    constexpr std::size_t most_told = 3;
    if (wrong_.empty()) return "";
    std::string text = fmt::format("{} of {} entries cannot be read: ", failed_, tried_);
    for (std::size_t i = 0; i < std::min(most_told, wrong_.size()); ++i)
      text += (i == 0 ? "" : "; ") + wrong_[i];
    if (wrong_.size() > most_told) text += fmt::format("; and {} more", wrong_.size() - most_told);
    return text;
  }

 private:
  std::size_t tried_ = 0, failed_ = 0;
  std::vector<std::string> wrong_;
};

}  // namespace

MachineCheck check_catalogue() try {
  CatalogueReading reading;
  const auto entry = [](auto read) {
    return [read](const std::string& name) { read(Yaml::of_text(name)); };
  };
  const auto links = reading.good_ones(link_entries, entry([](const Yaml& y) { read_link(y); }));
  const auto devices =
      reading.good_ones(device_entries, entry([](const Yaml& y) { read_device(y); }));
  const auto models =
      reading.good_ones(model_entries, [](const std::string& name) { read_catalogue_model(name); });
  const auto clusters =
      reading.good_ones(cluster_entries, [](const std::string& name) { read_ready_cluster(name); });
  reading.good_ones(host_entries, entry([](const Yaml& y) { read_host(y); }));
  reading.good_ones(operation_entries, entry([](const Yaml& y) {
                      read_operations(Yaml::load(find_entry_file(y, operation_entries).path));
                    }));
  reading.could([] { read_known_errors(); });
  MachineCheck check{"catalogue", Health::good,
                     fmt::format("{} models, {} devices, {} links, {} clusters", models, devices,
                                 links, clusters)};
  if (const std::string wrong = reading.wrong(); !wrong.empty()) {
    check.health = Health::doubtful;
    check.found += "; " + wrong;
    check.advice = "mend these files or install ddpsim again; what names them is refused";
  }
  if (const std::string none = why_no_known_errors(); !none.empty()) {
    check.health = Health::doubtful;
    check.found += "; no step has a band: " + none;
    if (!check.advice.empty()) check.advice += "; ";
    check.advice += how_to_know_errors;
  }
  return check;
} catch (const InputError& problem) {
  return {"catalogue", Health::missing, problem.what(),
          "install ddpsim again, or let DDPSIM_CATALOGUE name the folder"};
}

}  // namespace ddpsim
