#include "tools/command/man_page.hpp"

#include <string_view>

#include <fmt/format.h>

#include "backend/version.hpp"
#include "tools/command/command_help.hpp"

namespace ddpsim {
namespace {

/// Text as roff takes it: nothing in it is a macro or an escape, dashes can be copied.
std::string roff(std::string_view text) {
  std::string escaped;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '-')
      escaped += "\\-";
    else if (c == '\\')
      escaped += "\\e";
    else
      escaped += c;
    begins = c == '\n';
  }
  return escaped;
}

std::string section(const Command& command) {
  const CommandHelp help = help_of(command);
  std::string text = fmt::format(".SS {}\n.B {}\n.PP\n{}\n", roff(command.name),
                                 roff(help.usage.line), roff(help.usage.about));
  for (const ListedFlag& flag : help.flags) {
    const std::string letter = flag.letter.empty() ? "" : fmt::format("\\-{}, ", flag.letter);
    const std::string value =
        flag.value.empty() ? "" : fmt::format(" \\fI{}\\fR", roff(flag.value));
    text += fmt::format(".TP\n\\fB{}\\-\\-{}\\fR{}\n{}\n", letter, roff(flag.name), value,
                        roff(flag.meaning));
  }
  return text +
         fmt::format(".PP\nExample:\n.PP\n.RS\n.nf\n{}\n.fi\n.RE\n", roff(help.usage.example));
}

}  // namespace

std::string man_page() {
  std::string text = fmt::format(R"(.TH DDPSIM 1 "" "ddpsim {}"
.SH NAME
ddpsim \- predict, measure and tune data\-parallel training
.SH SYNOPSIS
.B ddpsim
.I COMMAND
[flags]
.SH DESCRIPTION
ddpsim predicts how fast a step of data\-parallel training will be, and which gradients will not
hide behind the backward pass. It runs the same schedules for real, and finds bucket sizes.
.SH COMMANDS
)",
                                 version);
  for (const Command& command : commands()) text += section(command);
  return text + R"(.SH ENVIRONMENT
.TP
.B DDPSIM_CATALOGUE
the folder of models, devices, links and clusters, in place of the one installed
.TP
.B DDPSIM_MODULES
the folder of the module for GPUs, in place of the one installed
.TP
.B DDPSIM_PYTHON
the Python that describe runs
.TP
.B COLUMNS
how wide tables may be where stdout is no terminal
.TP
.B NO_COLOR
if set to anything, nothing has colours unless \-\-color says so
.SH EXIT STATUS
0: done. 1: interrupted, or found wrong. 2: bad input, told in a line, also a file, folder or
network interface that is not there. 3: an error beyond the tolerance that was asked for. 4: the
machine failed: a rank, a device, memory, or no room or no right to write a file.
)";
}

}  // namespace ddpsim
