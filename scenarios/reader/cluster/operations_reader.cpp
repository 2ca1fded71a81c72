#include "scenarios/reader/cluster/operations_reader.hpp"

#include <filesystem>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/catalogue/named_files.hpp"
#include "scenarios/reader/cluster/operation_lines.hpp"
#include "scenarios/reader/format/file_end.hpp"
#include "scenarios/reader/format/file_kind.hpp"
#include "scenarios/reader/format/map.hpp"
#include "scenarios/reader/text/seal.hpp"
#include "scenarios/reader/text/while_unchanged.hpp"
#include "scenarios/reader/workload/device_kernel_reader.hpp"

namespace ddpsim {
namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 50;
constexpr std::size_t most_rows = 100'000;

constexpr std::string_view one_of_four = "a row has one of gemm, conv, attention and pattern";

/// A row as it is written.
struct OperationRow {
  std::optional<Product> gemm;
  std::optional<ConvolutionShape> conv;
  std::optional<AttentionOperation> attention;
  std::optional<MemoryPattern> pattern;
  DType type = DType::fp32;
  std::int64_t read = 0, written = 0;
  Duration time{};
};

const Map<OperationRow>& operation_row_map() {
  const auto bytes = [] { return value::whole<std::int64_t>(0, most_bytes); };
  static const auto map =
      Map<OperationRow>("measured_operation",
                        "A single operation and its time, by the keys that a kernel of a workload "
                        "description has: one of gemm, conv, attention and pattern.")
          .key("gemm", value::mapping(&product_map), &OperationRow::gemm,
               {.meaning = "A matrix product.",
                .otherwise = "it is none",
                .example = "{m: 8192, n: 1024, k: 4096, along_k: 1}"})
          .key("conv", value::mapping(&convolution_map), &OperationRow::conv,
               {.meaning = "A kernel of a convolution.",
                .otherwise = "it is none",
                .example = "{direction: weight, pictures: 64, channels: 256, pixels: 196, outputs: "
                           "256, places: 196, window: 9}"})
          .key("attention", value::mapping(&attention_map), &OperationRow::attention,
               {.meaning = "Attention in a fused kernel; it says which (`implementation`).",
                .otherwise = "it is none",
                .example = "{batch: 8, heads: 16, queries: 1024, keys: 1024, size: 64, "
                           "implementation: flash}"})
          .key("pattern", value::mapping(&pattern_map), &OperationRow::pattern,
               {.meaning = "What a kernel does that only moves memory.",
                .otherwise = "it is none",
                .example = "{of: softmax, rows: 8192, columns: 1024}"})
          .key("type", value::one_of(all_dtypes), &OperationRow::type,
               {.meaning = "How it multiplies; of a kernel that moves memory, its result's format.",
                .always_written = true})
          .key("read", bytes(), &OperationRow::read,
               {.meaning = "Bytes read from device memory, at least.",
                .example = "123456",
                .required = true})
          .key("written", bytes(), &OperationRow::written,
               {.meaning = "Bytes written to device memory, at least.",
                .example = "1234",
                .required = true})
          .key(
              "time", value::time(), &OperationRow::time,
              {.meaning = "How long it keeps the device busy, all its kernels and the gaps between "
                          "them.",
               .example = "174 us",
               .required = true})
          .needs({"gemm", "conv", "attention", "pattern"}, std::string(one_of_four))
          .excludes("conv", {"gemm", "attention", "pattern"}, std::string(one_of_four))
          .excludes("gemm", {"attention", "pattern"}, std::string(one_of_four))
          .excludes("attention", {"pattern"}, std::string(one_of_four))
          .check([](OperationRow& row, const YamlMap& given) {
            if (row.attention && row.attention->implementation == AttentionKernel::usual)
              given.at("attention")
                  .fail("say which kernel was measured: implementation: flash, efficient or cudnn");
          });
  return map;
}

DeviceKernel measured_kernel(const OperationRow& row) {
  DeviceKernel kernel;
  kernel.type = row.type;
  kernel.traffic = Bytes{row.read + row.written};
  if (row.gemm)
    kernel.shape = *row.gemm;
  else if (row.conv)
    kernel.shape = *row.conv;
  else if (row.attention)
    kernel.shape = *row.attention;
  else
    kernel.shape = *row.pattern;
  return kernel;
}

/// Each operation once.
Value<std::vector<MeasuredOperation>> operation_rows_value() {
  const std::string expected = "a list of measured operations";
  auto rows = value::list_of(value::mapping(&operation_row_map), expected);
  return {rows.type,
          [expected](const Yaml& given) {
            std::vector<MeasuredOperation> all;
            std::set<OperationPlace> places;
            const std::vector<Yaml> items = given.list(expected);
            if (items.size() > most_rows)
              given.fail(fmt::format("a list of {}: at most {} are read", items.size(), most_rows));
            for (const Yaml& item : items) {
              const OperationRow row = operation_row_map().read(item);
              all.push_back({measured_kernel(row), row.time});
              if (!places.insert(place_of(all.back().kernel)).second)
                item.fail("the same operation of the same size stands above: take one out");
            }
            return all;
          },
          {}};
}

Map<OperationsFile> make_operations_map() {
  using F = OperationsFile;
  Map<F> map("operations",
             "Single operations that were measured on a device. Its rows go before the laws of "
             "kernels.");
  map.key_constant("format", "ddpsim.operations/1",
                   {.meaning = "Marks the file as a table of measured operations.",
                    .example = "ddpsim.operations/1",
                    .required = true});
  add_written_by(map);
  map.key("source", value::text(), &F::source,
          {.meaning = "Where the figures come from, for people.",
           .example = "tests/data/h200/operations.csv.gz"})
      .key("device", value::text(), &F::device,
           {.meaning = "The device that was measured, as its driver calls it.",
            .example = "NVIDIA H200",
            .required = true})
      .key("torch", value::text(), &F::torch,
           {.meaning = "PyTorch's release.", .otherwise = "not said", .example = "2.13.0"})
      .key("driver", value::text(), &F::driver,
           {.meaning = "The driver's release.", .otherwise = "not said", .example = "580.159"})
      .key("date", value::text(), &F::date,
           {.meaning = "When it was measured.", .otherwise = "not said", .example = "2026-11-26"})
      .key("seconds", value::number(0, 1e7), &F::seconds,
           {.meaning = "How long measuring took.", .example = "118"})
      .key_taken("operations", operation_rows_value(),
                 [](F& file, std::vector<MeasuredOperation> rows) { file.rows = std::move(rows); },
                 {.meaning = "The operations, each once.",
                  .example = "[{gemm: {m: 64, n: 8, k: 8}, read: 2304, written: 2048, time: 3 us}]",
                  .required = true});
  add_end(map, "ddpsim.operations/1");
  return map;
}

/// The rows of a file, which is read once.
class RowsOfFile {
 public:
  explicit RowsOfFile(std::filesystem::path file) : file_(std::move(file)) {}

  /// Throws InputError.
  const OperationRows& get() {
    std::call_once(read_, [&] {
      const std::string content = content_of_file(file_);
      check_seal(content, file_.string());
      const auto on_lines = operations_on_lines(content);
      rows_ = rows_of(on_lines ? *on_lines : rows_of_yaml());
    });
    return rows_;
  }

 private:
  std::vector<MeasuredOperation> rows_of_yaml() const {
    const Yaml root = Yaml::load(file_);
    check_kind(root, FileKind::operations);
    return read_operations(root).rows;
  }

  std::filesystem::path file_;
  std::once_flag read_;
  OperationRows rows_;
};

/// The rows of a file, which many scenarios may name.
std::shared_ptr<RowsOfFile> shared_rows(const std::filesystem::path& file) {
  static WhileUnchanged<std::shared_ptr<RowsOfFile>> all;
  return all.of(file, [&] { return std::make_shared<RowsOfFile>(file); });
}

}  // namespace

const Map<OperationsFile>& operations_map() {
  static const Map<OperationsFile> map = make_operations_map();
  return map;
}

OperationsFile read_operations(const Yaml& given) {
  const YamlMap map(given);
  check_end_if_written(map, map.at("format"));
  return operations_map().read(given);
}

std::string device_of_operations(const Yaml& given) {
  const auto file = find_entry_file(given, operation_entries).path;
  return read_operations(Yaml::load(file, example_of(FileKind::operations))).device;
}

std::shared_ptr<const OperationTable> measured_operations(const Yaml& given) {
  if (given.is_map())
    given.fail("expected a name from `ddpsim list operations`, a path or {scaled_from: h200}");
  const EntryFile entry = find_entry_file(given, operation_entries);
  auto rows = shared_rows(entry.path);
  if (!entry.of_catalogue) rows->get();
  return std::make_shared<const OperationTable>(
      [rows]() -> const OperationRows& { return rows->get(); });
}

}  // namespace ddpsim
