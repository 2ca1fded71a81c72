#include "scenarios/reader/host_reader.hpp"

#include "scenarios/reader/catalogue.hpp"
#include "scenarios/reader/entry_keys.hpp"

namespace ddpsim {

const Map<Host>& host_map() {
  static const Map<Host> map = [] {
    Map<Host> all("host", "The processors of a node, which enqueue kernels.");
    add_entry_keys(all, host_entries, &Host::source);
    all.key_taken("factor", value::number(0.05, 100),
                  [](Host& host, double factor) { host.factor *= factor; },
                  {.meaning = "How many times as long its calls take as those of its `base`. "
                              "`python -m ddpsim.measure host` measures it between two hosts.",
                   .unset = "1",
                   .example = "1.4"})
        .needs({"base", "factor"});
    return all;
  }();
  return map;
}

Host read_host(const Yaml& given) {
  Host host;
  const std::vector<Entry> entries = entry_with_bases(given, host_entries);
  host_map().read(layers_of(entries), host);
  host.name = entries.front().name;
  return host;
}

}  // namespace ddpsim
