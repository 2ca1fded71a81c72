#include <cstdlib>

#include <fmt/format.h>

#include "scenarios/reader/text/input_error.hpp"
#include "tools/command/cluster_flags.hpp"
#include "tools/command/command.hpp"
#include "tools/explore/explorer.hpp"
#include "tools/explore/http_server.hpp"
#include "tools/explore/site.hpp"
#include "tools/report/writers/notes.hpp"
#include "tools/study/flag_values.hpp"

namespace ddpsim {
namespace {

namespace po = boost::program_options;

const Usage explore_usage{
    "ddpsim explore [flags] SCENARIO",
    "Serves a page on which bucket caps, ranks, links, batch, comm hook and skew of a scenario are "
    "sliders, and prints\n"
    "its address: open it in a browser on this machine. Figures and timeline follow each move; "
    "they are those of\n"
    "`ddpsim run` with the settings that the page shows. Each state is a link to copy; \"save\" "
    "writes the scenario beside\n"
    "the one given, under a name that is free. Ctrl-C ends it. Only this machine can reach the "
    "page, and only with the\n"
    "address as it is printed: a part of it is random.",
    "ddpsim explore scenarios/examples/first.yaml"};

struct ExploreFlags {
  CommonOptions common;
  ClusterFlags cluster;
  std::string port = "0", longest;
};

po::options_description described(ExploreFlags& flags) {
  po::options_description own;
  own.add_options()("port", po::value(&flags.port)->value_name("N"),
                    "serve on this port; 0, the default: on any that is free")(
      "for", po::value(&flags.longest)->value_name("TIME"),
      "end by itself after this time, such as 10min");
  flags.cluster.add_to(own);
  return own;
}

}  // namespace

int explore_command(const std::vector<std::string>& arguments) {
  ExploreFlags flags;
  if (!parse(arguments, explore_usage, Flag::set | Flag::laws_only, described(flags), flags.common))
    return exit_done;
  if (flags.common.files.size() != 1)
    throw InputError("explore takes one scenario: ddpsim explore scenarios/examples/first.yaml");
  const int port = count_of("--port", flags.port, 0, 65535);
  std::optional<Duration> longest;
  if (!flags.longest.empty()) longest = duration_of("--for", flags.longest);
  flags.common.prepend(flags.cluster.settings());

  const Explorer explorer(flags.common.files.front(), flags.common.set, flags.common.laws_only);
  HttpServer server(static_cast<std::uint16_t>(port));
  const Site site(explorer, random_token(), server.port());
  Outputs outputs;
  outputs.add_text(site.address() + "\n");
  outputs.commit();
  note("open this address in a browser on this machine; Ctrl-C ends the page");
  server.run([&site](const HttpRequest& request) { return site.answer(request); },
             longest ? std::optional(std::chrono::duration_cast<std::chrono::nanoseconds>(*longest))
                     : std::nullopt);
  // Leaves at once while an answer is still being computed: nobody waits for it any more.
  if (server.busy()) std::_Exit(exit_done);
  return exit_done;
}

}  // namespace ddpsim
