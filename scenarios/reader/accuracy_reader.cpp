#include "scenarios/reader/accuracy_reader.hpp"

#include <filesystem>

#include "scenarios/reader/catalogue.hpp"
#include "scenarios/reader/map.hpp"

namespace ddpsim {
namespace {

constexpr int most_ranks = 1 << 20;
/// The predicted step is some part of the measured one, so that there is a factor between them.
constexpr double least_error = -0.9999;

const Map<KnownErrors>& known_errors_map() {
  static const auto map =
      Map<KnownErrors>("known_errors", "How far predictions of a measured setup were off.")
          .key(
              "setup", value::text(), &KnownErrors::setup,
              {.meaning = "The name of its file in scenarios/measured, or of an experiment's case.",
               .required = true})
          .key("device", value::text(), &KnownErrors::device,
               {.meaning = "The device of each rank.", .required = true})
          .key("link", value::text(), &KnownErrors::link,
               {.meaning = "The kind of the link that decides."})
          .key("ranks", value::whole(1, most_ranks), &KnownErrors::ranks,
               {.meaning = "How many ranks there were.", .required = true})
          .key("fitted", value::one_of(all_fitted_on), &KnownErrors::fitted,
               {.meaning = "What was fitted before.", .required = true})
          .key("errors",
               value::list_of(value::number(least_error, 1e6), "a list of numbers",
                              "a list is empty"),
               &KnownErrors::errors,
               {.meaning = "The predicted over the measured step, less 1, of each row.",
                .required = true});
  return map;
}

struct KnownErrorsFile {
  std::vector<KnownErrors> rows;
};

const Map<KnownErrorsFile>& file_map() {
  static const auto map =
      Map<KnownErrorsFile>("accuracy", "How far predictions of measured setups were off.")
          .key("rows", value::list_of(value::mapping(&known_errors_map), "a list of mappings"),
               &KnownErrorsFile::rows,
               {.meaning = "One mapping for each setup, number of ranks and way of fitting.",
                .required = true});
  return map;
}

}  // namespace

std::vector<KnownErrors> read_known_errors() {
  const std::filesystem::path file = catalogue_folder() / "accuracy.yaml";
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return {};
  return file_map().read(Yaml::load(file)).rows;
}

}  // namespace ddpsim
