#include "scenarios/reader/explain/reference.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/catalogue/named_files.hpp"
#include "scenarios/reader/explain/glossary.hpp"
#include "scenarios/reader/format/elsewhere.hpp"
#include "scenarios/reader/format/format.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/text/nearest.hpp"
#include "scenarios/reader/text/quantity_text.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t terminal_width = 100, page_width = 118, most_lines_of_entry = 40;

/// The words of a text; what stands between two backticks is one.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  bool open = false;
  for (std::string word; stream >> word;) {
    const bool odd = std::count(word.begin(), word.end(), '`') % 2 != 0;
    if (open)
      words.back().append(" ").append(word);
    else
      words.push_back(word);
    open = open != odd;
  }
  return words;
}

/// `text` on lines of at most `width`; the first begins with `first`, the others with `rest`.
std::string wrapped(const std::string& text, std::size_t width, const std::string& first,
                    const std::string& rest) {
  std::string all, line = first;
  bool empty = true;
  for (const std::string& word : words_of(text)) {
    if (!empty && line.size() + 1 + word.size() > width) {
      all.append(line).append("\n");
      line = rest;
      empty = true;
    }
    line.append(empty ? "" : " ").append(word);
    empty = false;
  }
  return all.append(line).append("\n");
}

/// A key and all paths that lead to it: a link's latency is there within a node and between nodes.
struct Found {
  const KeyDescription* key;
  std::vector<std::string> paths;
  bool of_scenario = false;  ///< one of the paths is of a scenario
};

/// All keys of all formats. Paths of formats other than the scenario begin with the format's name.
std::vector<Found> all_keys() {
  std::vector<Found> all;
  std::map<const KeyDescription*, std::size_t> position;
  for (const Format& format : all_formats())
    walk(format.root(),
         [&](const std::string& path, const MapDescription&, const KeyDescription& key) {
           const auto [found, first] = position.emplace(&key, all.size());
           if (first) all.push_back({&key, {}, format.name == "scenario"});
           const std::string within = format.name == "scenario" ? path : format.name + "." + path;
           std::vector<std::string>& paths = all[found->second].paths;
           if (std::find(paths.begin(), paths.end(), within) == paths.end())
             paths.push_back(within);
         });
  return all;
}

bool ends_so(const std::string& path, const std::string& key) {
  return path == key || (path.size() > key.size() && path.ends_with(key) &&
                         path[path.size() - key.size() - 1] == '.');
}

/// The mappings that have keys.
std::vector<const MapDescription*> maps_within(const Type& type) {
  std::vector<const MapDescription*> maps;
  for (const Form& form : type) {
    if (form.kind == Form::Kind::map && !form.map().keys.empty()) maps.push_back(&form.map());
    const auto items = maps_within(form.items);
    maps.insert(maps.end(), items.begin(), items.end());
  }
  return maps;
}

std::vector<NamedChoice> choices_within(const Type& type) {
  std::vector<NamedChoice> all;
  for (const Form& form : type) {
    for (const NamedChoice& choice : form.choices)
      if (!choice.meaning.empty()) all.push_back(choice);
    const auto items = choices_within(form.items);
    all.insert(all.end(), items.begin(), items.end());
  }
  return all;
}

/// "Default: 25 MiB; none under before_overflow."
std::string default_of(const About& about, const std::string& quote) {
  if (about.required) return "Needed.";
  if (about.unset.empty() && about.otherwise.starts_with("needed"))
    return fmt::format("N{}.", about.otherwise.substr(1));
  if (about.unset.empty() && about.otherwise.empty()) return "";
  std::string text = "Default: ";
  if (!about.unset.empty()) text += fmt::format("{0}{1}{0}", quote, about.unset);
  if (!about.otherwise.empty())
    text += fmt::format("{}{}", about.unset.empty() ? "" : "; ", about.otherwise);
  return text + ".";
}

std::string elsewhere_of(const About& about) {
  std::string text;
  for (const Elsewhere& each : about.elsewhere) {
    text += fmt::format("{}{}{}{}", text.empty() ? "" : ", ", each.owner,
                        each.owner.empty() ? "" : " ", each.name);
    if (!each.note.empty()) text += fmt::format(" ({})", each.note);
  }
  return text;
}

std::string first_sentence(const std::string& text) {
  const std::size_t end = text.find(". ");
  return end == std::string::npos ? text : text.substr(0, end + 1);
}

std::string explained(const Found& found) {
  const About& about = found.key->about;
  std::string text;
  for (const std::string& path : found.paths) text += path + "\n";
  const auto line = [&](const std::string& words) {
    if (!words.empty()) text += wrapped(words, terminal_width, "  ", "  ");
  };
  line(about.meaning);
  line("Type: " + description_of(found.key->type) + ".");
  line(default_of(about, ""));
  for (const NamedChoice& choice : choices_within(found.key->type))
    text += wrapped(fmt::format("{}: {}", choice.name, choice.meaning), terminal_width, "    ",
                    "      ");
  for (const MapDescription* map : maps_within(found.key->type)) {
    line("Keys of the mapping:");
    for (const KeyDescription& key : map->keys)
      text += wrapped(fmt::format("{}: {}", key.name, first_sentence(key.about.meaning)),
                      terminal_width, "    ", "      ");
  }
  if (!about.example.empty()) line(fmt::format("Example: {}: {}", found.key->name, about.example));
  if (!about.source.empty()) line(fmt::format("Source: {}.", about.source));
  if (!about.elsewhere.empty()) line("Elsewhere: " + elsewhere_of(about) + ".");
  return text;
}

std::string in_small_letters(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text;
}

/// The keys whose path is `key`; where there is none, those whose path ends so.
std::vector<const Found*> keys_meant(const std::string& key, const std::vector<Found>& all) {
  std::vector<const Found*> keys;
  for (const bool whole : {true, false}) {
    for (const Found& found : all) {
      const auto meant = [&](const std::string& path) {
        return whole ? path == key : ends_so(path, key);
      };
      if (std::any_of(found.paths.begin(), found.paths.end(), meant)) keys.push_back(&found);
    }
    if (!keys.empty()) break;
  }
  return keys;
}

/// What those of these keys mean that are of a scenario, or that are not.
std::string explained_keys(const std::vector<const Found*>& keys, bool of_scenario) {
  std::string text;
  for (const Found* found : keys)
    if (found->of_scenario == of_scenario) text += (text.empty() ? "" : "\n") + explained(*found);
  return text;
}

/// The kinds of entries of the catalogue, and where a scenario names one.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> entry_kinds{
    {{model_entries, "workload.model"},
     {device_entries, "cluster.device"},
     {link_entries, "cluster.intra_node and cluster.inter_node"},
     {cluster_entries, "cluster"},
     {host_entries, "cluster.host"},
     {operation_entries, "cluster.device.operations"}}};

/// What the catalogue has under a name of small letters: its file, without comments; "" if it has
/// nothing.
std::string explained_entries(const std::string& name) {
  std::string text;
  for (const auto& [kind, key] : entry_kinds)
    for (const std::string& entry : catalogue_names(kind)) {
      if (in_small_letters(entry) != name) continue;
      text += fmt::format("{}{}\n", text.empty() ? "" : "\n", entry);
      text += wrapped(fmt::format("An entry of the catalogue of {}, for {}. `ddpsim list {}` "
                                  "compares all of them. Its keys:",
                                  kind, key, kind),
                      terminal_width, "  ", "  ");
      std::istringstream file(
          content_of_file(catalogue_folder() / kind / fmt::format("{}.yaml", entry)));
      std::size_t lines = 0;
      for (std::string line; lines <= most_lines_of_entry && std::getline(file, line);)
        if (!line.empty() && line[0] != '#')
          text += fmt::format("    {}\n", lines++ < most_lines_of_entry ? line : "...");
    }
  return text;
}

/// The keys that take a name of small letters from a closed set, with what it means there; keys
/// where it means the same stand together.
std::string explained_choices(const std::string& name, const std::vector<Found>& all) {
  std::vector<std::pair<std::string, std::string>> found;  // a meaning, and its keys
  for (const Found& key : all)
    for (const NamedChoice& choice : choices_within(key.key->type)) {
      if (in_small_letters(std::string(choice.name)) != name) continue;
      const auto same = std::find_if(found.begin(), found.end(), [&](const auto& each) {
        return each.first == choice.meaning;
      });
      const std::string line = fmt::format("{}: {}\n", key.paths.front(), choice.name);
      if (same == found.end())
        found.emplace_back(choice.meaning, line);
      else
        same->second += line;
    }
  std::string text;
  for (const auto& [meaning, keys] : found)
    text += (text.empty() ? "" : "\n") + keys + wrapped(meaning, terminal_width, "  ", "  ");
  return text;
}

/// What entries such as the glossary's say of a word; "" if they have nothing.
std::string explained_word(const std::string& word, const std::vector<GlossaryEntry>& entries) {
  std::string text;
  for (const GlossaryEntry& entry : entries_of(word, entries))
    text += fmt::format("{}{}\n{}", text.empty() ? "" : "\n", entry.heading,
                        wrapped(entry.text, terminal_width, "  ", "  "));
  return text;
}

std::string listed_units(Quantity quantity) {
  std::string text;
  for (const std::string_view unit : unit_names(quantity))
    text += fmt::format("{}`{}`", text.empty() ? "" : ", ", unit);
  return text;
}

class Page {
 public:
  std::string text() {
    introduction();
    for (const Format& format : all_formats()) {
      const MapDescription& root = format.root();
      const bool again = written_.contains(root.name);
      heading(fmt::format("## {}{}", static_cast<char>(std::toupper(format.title.front())),
                          format.title.substr(1)));
      if (again)
        paragraph(fmt::format("Its keys are those of [`{0}`](#{0}) above.", root.name));
      else
        map(root, "");
    }
    return text_;
  }

 private:
  void introduction() {
    text_ =
        "# The keys of ddpsim's files\n\n"
        "<!-- Written by `ddpsim explain --markdown`; a test compares the two. -->\n";
    paragraph(
        "Every key of every YAML file that ddpsim reads or writes. `ddpsim explain KEY` prints the "
        "same about one key, and `ddpsim schema FORMAT` prints a JSON Schema by which editors "
        "check "
        "and complete such files: in VS Code with the YAML extension, a first line `# "
        "yaml-language-server: $schema=scenario.json` does that for a schema saved beside the "
        "file.");
    paragraph(
        "Every quantity carries its unit, with or without a blank before it; a bare number where a "
        "unit is needed is an error.");
    text_ += "\n";
    bullet("Times: " + listed_units(Quantity::duration) + ".");
    bullet("Sizes: " + listed_units(Quantity::bytes) +
           ". KiB, MiB, GiB and TiB are powers of 1024.");
    bullet("Rates of bytes or bits: " + listed_units(Quantity::bandwidth) + ".");
    bullet("Rates of floating-point operations: " + listed_units(Quantity::flop_rate) + ".");
    bullet("Prices per hour: three capital letters for the currency, such as 2.5 USD/h.");
    paragraph(
        "Names of a closed set and of the catalogue match in any case. Unknown and repeated keys "
        "are errors. `--set KEY=VALUE` replaces any key of a scenario by its dotted path, such as "
        "`--set training.bucket_cap=50MiB`, and changes that key alone: keys beside it stay as a "
        "name of the catalogue, or a file, has them. A name that the catalogue has is the "
        "catalogue's, also beside a file of that name, which is written with a slash: "
        "`./dgx-h100`. Paths are relative to the file that names "
        "them; on the command line, and set from Python, to the current folder, or, where no such "
        "file is there, to the scenario's.");
  }

  void heading(const std::string& words) { text_ += fmt::format("\n{}\n", words); }
  void paragraph(const std::string& words) {
    text_ += '\n';
    text_ += wrapped(words, page_width, "", "");
  }
  void bullet(const std::string& words, const std::string& indent = "") {
    text_ += wrapped(words, page_width, indent + "- ", indent + "  ");
  }

  /// A mapping, then those within it.
  void map(const MapDescription& map, const std::string& path) {
    written_.insert(map.name);
    if (!path.empty()) heading("### `" + path + "`");
    text_ += fmt::format("\n<a id=\"{}\"></a>\n", map.name);
    paragraph(map.meaning);
    text_ += "\n";
    for (const KeyDescription& each : map.keys) key(each, variants_with(map, each.name));
    rules(map);
    for (const KeyDescription& each : map.keys) {
      for (const MapDescription* within : maps_within(each.type))
        if (!written_.contains(within->name))
          this->map(*within, path.empty() ? each.name : path + "." + each.name);
    }
  }

  /// "Families: gpt2, bert.", where not all variants have a key.
  static std::string variants_with(const MapDescription& map, const std::string& key) {
    std::string names;
    std::size_t count = 0;
    for (const MapDescription::Variant& variant : map.variants)
      if (variant.map->find(key) != nullptr) {
        names += (names.empty() ? "" : ", ") + variant.name;
        ++count;
      }
    return count == map.variants.size() ? ""
                                        : fmt::format(" Only of {}: {}.", map.variant_key, names);
  }

  void key(const KeyDescription& key, const std::string& variants) {
    const About& about = key.about;
    std::string words = fmt::format("**`{}`**: {}.", key.name, description_of(key.type, "`"));
    std::string maps;
    for (const MapDescription* within : maps_within(key.type))
      maps += fmt::format("{0}[{1}](#{1})", maps.empty() ? "" : " or ", within->name);
    if (!maps.empty()) words += fmt::format(" Keys: {}.", maps);
    const auto add = [&](const std::string& more) {
      if (!more.empty()) words += " " + more;
    };
    add(default_of(about, "`"));
    add(about.meaning);
    words += variants;
    if (!about.example.empty()) add(fmt::format("Example: `{}: {}`.", key.name, about.example));
    if (!about.source.empty()) add(fmt::format("Source: {}.", about.source));
    if (!about.elsewhere.empty()) add(fmt::format("Elsewhere: {}.", elsewhere_of(about)));
    bullet(words);
    for (const NamedChoice& choice : choices_within(key.type))
      bullet(fmt::format("`{}`: {}", choice.name, choice.meaning), "  ");
  }

  void rules(const MapDescription& map) {
    std::string words;
    if (!map.single.empty()) words += "Exactly one of these keys is there. ";
    for (const Exclusion& exclusion : map.exclusions) {
      if (exclusion.others.empty()) continue;
      std::string others;
      for (const std::string& other : exclusion.others)
        others += fmt::format("{}`{}`", others.empty() ? "" : " or ", other);
      words += fmt::format("`{}` does not go with {}. ", exclusion.key, others);
    }
    if (!words.empty()) paragraph(words);
  }

  std::string text_;
  std::set<std::string> written_;
};

}  // namespace

std::string key_tree() {
  std::string text;
  std::set<std::string> shown;
  for (const Format& format : all_formats()) {
    text += fmt::format("{}{}\n", text.empty() ? "" : "\n", format.name);
    walk(format.root(),
         [&](const std::string& path, const MapDescription&, const KeyDescription& key) {
           const auto depth = static_cast<std::size_t>(std::count(path.begin(), path.end(), '.'));
           const std::string begin = fmt::format("{:{}}{}", "", 2 * depth + 2, key.name);
           std::string type = description_of(key.type);
           const std::size_t room = terminal_width - std::max<std::size_t>(begin.size() + 2, 36);
           if (type.size() > room) type = type.substr(0, room - 3) + "...";
           text += fmt::format("{:<34}  {}\n", begin, type);
         });
  }
  return text +
         "\nddpsim explain WORD says what a key, a name that a key takes, or a word of the tables "
         "means.\n";
}

std::string known_explanation(const std::string& given, const std::vector<GlossaryEntry>& more) {
  std::string key = in_small_letters(given);  // as keys are; other programs' names are not
  const bool has_blank = key.find(' ') != std::string::npos;
  std::replace(key.begin(), key.end(), ' ', '_');
  const std::vector<Found> all = all_keys();
  std::string text;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) text += (text.empty() ? "" : "\n") + part;
  };
  // What people write, then what they see, then what programs write to each other.
  const auto add_all = [&](const std::string& name, bool words) {
    const std::vector<const Found*> keys = keys_meant(name, all);
    add(explained_keys(keys, true));
    add(explained_entries(name));
    if (words && has_blank) add(explained_entries(in_small_letters(given)));
    add(explained_choices(name, all));
    if (words) add(explained_word(given, glossary()));
    if (words) add(explained_word(given, more));
    if (words && has_blank) add(explained_word(name, more));
    add(explained_keys(keys, false));
  };
  add_all(key, true);
  if (text.empty())
    for (const std::string& singular : singulars_of(key)) add_all(singular, false);
  if (text.empty()) add(explained_word(given.substr(given.rfind('.') + 1), more));
  return text;
}

std::string explanation(const std::string& given, const std::vector<GlossaryEntry>& more) {
  if (std::string text = known_explanation(given, more); !text.empty()) return text;
  const std::string key = in_small_letters(given);
  const std::vector<Found> all = all_keys();
  if (const std::string told = told_elsewhere(given); !told.empty())
    throw InputError(fmt::format("unknown key \"{}\": {}", given.substr(0, 60), told));
  std::vector<std::string> known;
  for (const Found& found : all) {
    known.push_back(found.key->name);
    known.insert(known.end(), found.paths.begin(), found.paths.end());
  }
  for (const auto& [kind, of] : entry_kinds)
    for (const std::string& name : catalogue_names(kind)) known.push_back(name);
  for (const auto* entries : {&glossary(), &more})
    for (const GlossaryEntry& entry : *entries)
      for (const std::string& word : entry.words) known.push_back(in_small_letters(word));
  const std::vector<const Found*> elsewhere = keys_meant(key.substr(key.rfind('.') + 1), all);
  const std::string guess =
      elsewhere.empty() ? nearest(key, known) : elsewhere.front()->paths.front();
  throw InputError(fmt::format("unknown key \"{}\"{}; `ddpsim explain` lists all keys",
                               given.substr(0, 60),
                               guess.empty() ? "" : fmt::format("; did you mean \"{}\"?", guess)));
}

std::string reference_page() {
  return Page().text();
}

}  // namespace ddpsim
