// Completion for shells, written from the commands' own flags: a flag that is new is completed too.

#include <array>

#include <fmt/format.h>

#include "scenarios/reader/text/input_error.hpp"
#include "tools/command/command_help.hpp"

namespace ddpsim {
namespace {

const Usage completion_usage{
    "ddpsim completion bash|zsh|fish",
    "Prints what makes a shell complete ddpsim's commands and flags. Every shell reads it from a "
    "file of its own:\n"
    "  bash   ddpsim completion bash > ~/.local/share/bash-completion/completions/ddpsim\n"
    "  zsh    ddpsim completion zsh > FOLDER/_ddpsim, where FOLDER is in $fpath\n"
    "  fish   ddpsim completion fish > ~/.config/fish/completions/ddpsim.fish",
    "ddpsim completion bash"};

std::string command_names() {
  std::string names;
  for (const Command& command : commands()) names += command.name + " ";
  return names + "help";
}

/// A text in single quotes, as bash and zsh read it: 'it'\''s'.
std::string in_quotes(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string bash() {
  std::string cases;
  for (const Command& command : commands()) {
    std::string flags;
    for (const ListedFlag& flag : help_of(command).flags)
      flags += (flags.empty() ? "--" : " --") + flag.name;
    cases += fmt::format("    {}) words=\"{}\" ;;\n", command.name, flags);
  }
  return fmt::format(R"(_ddpsim() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} words=""
  COMPREPLY=()
  case ${{COMP_WORDS[1]}} in
{}    help) words="{}" ;;
  esac
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "{} --help --version" -- "$current")
  elif [[ $current == -* || ${{COMP_WORDS[1]}} == help ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}}
complete -o filenames -F _ddpsim ddpsim
)",
                     cases, command_names(), command_names());
}

/// A text within the brackets of zsh's _arguments, and before a colon of _describe.
std::string for_zsh(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string zsh() {
  std::string described, cases;
  for (const Command& command : commands()) {
    described += fmt::format(
        "    {}\n", in_quotes(fmt::format("{}:{}", command.name, for_zsh(command.summary))));
    std::string flags;
    for (const ListedFlag& flag : help_of(command).flags) {
      const std::string value =
          flag.value.empty() ? "" : fmt::format(":{}:_files", for_zsh(flag.value));
      flags += fmt::format("        {} \\\n", in_quotes(fmt::format("*--{}[{}]{}", flag.name,
                                                                    for_zsh(flag.meaning), value)));
    }
    cases += fmt::format("    {})\n      _arguments \\\n{}        '*:file:_files' ;;\n",
                         command.name, flags);
  }
  return fmt::format(R"(#compdef ddpsim
_ddpsim() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{}  esac
}}
compdef _ddpsim ddpsim
)",
                     described, cases);
}

/// A text in single quotes, as fish reads it.
std::string for_fish(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string fish() {
  std::string text;
  for (const Command& command : commands())
    text += fmt::format("complete -c ddpsim -n __fish_use_subcommand -f -a {} -d {}\n",
                        command.name, for_fish(command.summary));
  for (const Command& command : commands())
    for (const ListedFlag& flag : help_of(command).flags)
      text +=
          fmt::format("complete -c ddpsim -n '__fish_seen_subcommand_from {}' -l {}{}{} -d {}\n",
                      command.name, flag.name, flag.letter.empty() ? "" : " -s " + flag.letter,
                      flag.value.empty() ? "" : " -r", for_fish(flag.meaning));
  return text;
}

struct Shell {
  std::string_view name;
  std::string (*script)();
};
constexpr std::array shells{Shell{"bash", bash}, Shell{"zsh", zsh}, Shell{"fish", fish}};

}  // namespace

int completion_command(const std::vector<std::string>& arguments) {
  CommonOptions options;
  if (!parse(arguments, completion_usage, 0, {}, options)) return exit_done;
  if (options.files.size() != 1)
    throw InputError("completion needs a shell: bash, zsh or fish; see ddpsim completion --help");
  for (const Shell& shell : shells) {
    if (shell.name != options.files.front()) continue;
    Outputs outputs;
    outputs.add("-", shell.script());
    outputs.commit();
    return exit_done;
  }
  throw InputError(
      fmt::format("unknown shell \"{}\"; known: bash, zsh, fish", options.files.front()));
}

}  // namespace ddpsim
