#include "scenarios/reader/cluster/host_reader.hpp"

#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/catalogue/entry_keys.hpp"
#include "scenarios/reader/format/file_end.hpp"

namespace ddpsim {

namespace {

/// What a call of each of five operations on CPU tensors takes.
struct HostTimes {
  Duration add{}, view{}, linear{}, layer_norm{}, conv2d{};
};

const Map<HostTimes>& host_times_map() {
  static const auto map =
      Map<HostTimes>("host_times",
                     "What a call of PyTorch on small CPU tensors takes on the host, by operation.")
          .key("add", value::time(), &HostTimes::add,
               {.meaning = "x + y.", .example = "1.4 us", .required = true})
          .key("view", value::time(), &HostTimes::view,
               {.meaning = "x.view().", .example = "0.8 us", .required = true})
          .key("linear", value::time(), &HostTimes::linear,
               {.meaning = "torch.nn.Linear.", .example = "4 us", .required = true})
          .key("layer_norm", value::time(), &HostTimes::layer_norm,
               {.meaning = "torch.nn.LayerNorm.", .example = "5 us", .required = true})
          .key("conv2d", value::time(), &HostTimes::conv2d,
               {.meaning = "torch.nn.Conv2d.", .example = "9 us", .required = true});
  return map;
}

Map<Host> make_host_map() {
  Map<Host> map("host", "The processors of a node, which enqueue kernels.");
  map.key_constant("format", "ddpsim.host/1",
                   {.meaning = "Marks a file of `python -m ddpsim.measure host`. A host of a "
                               "scenario or of the catalogue does without.",
                    .otherwise = "not marked",
                    .example = "ddpsim.host/1"});
  add_written_by(map);
  add_entry_keys(map, host_entries, &Host::source);
  map.key_said("host", value::text(),
               {.meaning = "The processor.", .otherwise = "not said", .example = "AMD EPYC 9534"})
      .key_said("torch", value::text(),
                {.meaning = "PyTorch's release.", .otherwise = "not said", .example = "2.13.0"})
      .key_said(
          "date", value::text(),
          {.meaning = "When it was measured.", .otherwise = "not said", .example = "2026-11-26"})
      .key_taken("measured", value::mapping(&host_times_map), [](Host&, const HostTimes&) {},
                 {.meaning = "What was measured. Only ratios between hosts mean something; no "
                             "prediction depends on it.",
                  .otherwise = "nothing",
                  .example = "{add: 1.4 us, view: 0.8 us, linear: 4 us, layer_norm: 5 us, conv2d: "
                             "9 us}"})
      .key_taken(
          "factor", value::number(0.05, 100),
          [](Host& host, double factor) { host.factor *= factor; },
          {.meaning = "How many times as long its calls take as those of its `base`; without "
                      "one, as those of the reference host. `python -m ddpsim.measure host` "
                      "measures it between two hosts.",
           .unset = "1",
           .example = "1.4"})
      .needs({"base", "factor"},
             "no factor over another host: write one, or measure against that host's file (python "
             "-m ddpsim.measure host --reference FILE)");
  add_end(map, "ddpsim.host/1");
  return map;
}

}  // namespace

const Map<Host>& host_map() {
  static const Map<Host> map = make_host_map();
  return map;
}

Host read_host(const Yaml& given) {
  Host host;
  const std::vector<Entry> entries = entry_with_bases(given, host_entries);
  for (const Entry& entry : entries)
    if (const YamlMap map(entry.yaml); const auto format = map.find("format"))
      check_end_if_written(map, *format);
  host_map().read(layers_of(entries), host);
  host.name = entries.front().name;
  host.source = source_of(entries);
  return host;
}

}  // namespace ddpsim
