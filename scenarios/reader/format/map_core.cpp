#include "scenarios/reader/format/map_core.hpp"

#include <optional>
#include <utility>

#include "scenarios/reader/format/value.hpp"

namespace ddpsim {
namespace {

/// The value as it is written in YAML; "" for none, and for an empty text, list or mapping.
std::string written(const MapCore::Put& put, const void* t) {
  YAML::Emitter out;
  out.SetSeqFormat(YAML::Flow);
  if (!put(&out, t)) return "";
  const std::string text = out.c_str();
  return text == "\"\"" || text == "[]" || text == "{}" ? "" : text;
}

}  // namespace

void MapCore::add(KeyDescription key, Read read, Write write) {
  description_.keys.push_back(std::move(key));
  handlers_.push_back({.read = std::move(read), .write = std::move(write)});
}

void MapCore::add_field(KeyDescription key, Read read, Put put, const void* initial) {
  std::string text = written(put, initial);
  About& about = key.about;
  if (!about.required && about.unset.empty() && about.otherwise.empty()) about.unset = text;
  add(std::move(key), std::move(read));
  handlers_.back().put = std::move(put);
  handlers_.back().initial = std::move(text);
}

void MapCore::add_constant(Told name, const std::string& word, About about) {
  const auto constant = value::constant(word);
  add(
      {std::string(name), constant.type, std::move(about)},
      [read = constant.read](void*, const Yaml& given) { read(given); },
      [name, write = constant.write](YAML::Emitter& out, const void*) {
        out << YAML::Key << std::string(name) << YAML::Value;
        write(out, {});
      });
}

void MapCore::needs(const std::vector<std::string>& keys, Told problem) {
  Need& need = description_.needs.emplace_back();
  need.problem = problem;
  for (const std::string& key : keys) need.any_of.push_back({.key = key});
}

void MapCore::read(const std::vector<Yaml>& layers, void* into) const {
  std::vector<YamlMap> maps;
  for (const Yaml& layer : layers) {
    maps.emplace_back(layer).check_together(description_);
    maps.back().refuse_joined(description_);
  }
  std::vector<std::optional<Yaml>> so_far(handlers_.size());  // the value of each key
  for (const YamlMap& map : maps)
    for (std::size_t k = 0; k < handlers_.size(); ++k) {
      const KeyDescription& key = description_.keys[k];
      if (const auto value = map.find(key.name)) {
        // A Yaml that is assigned to would write into the file's nodes: emplace makes another.
        const Yaml whole = so_far[k] ? value->over(*so_far[k], key) : *value;
        handlers_[k].read(into, so_far[k].emplace(whole));
      } else if (key.about.required && &map == &maps.back()) {
        YamlMap::check_there(maps, key.name, description_);
      }
    }
  YamlMap::check_needs(maps, description_);
  for (const auto& of_all : checks_) of_all(into, maps.back());
  for (const YamlMap& map : maps) map.refuse_unknown(description_);
}

void MapCore::write_field(YAML::Emitter& out, const KeyDescription& key, const Handler& handler,
                          const void* t) {
  if (!handler.put(nullptr, t)) return;
  const bool always = key.about.required || key.about.always_written;
  if (!always && written(handler.put, t) == handler.initial) return;
  out << YAML::Key << key.name << YAML::Value;
  const std::string remark(key.about.remark);
  const bool above = value::over_lines(key.type);
  if (!remark.empty() && above) out << YAML::Comment(remark);
  handler.put(&out, t);
  if (!remark.empty() && !above) out << YAML::Comment(remark);
}

void MapCore::write(YAML::Emitter& out, const void* t,
                    const std::map<std::string, std::string>& said) const {
  for (std::size_t k = 0; k < handlers_.size(); ++k) {
    const KeyDescription& key = description_.keys[k];
    if (const auto text = said.find(key.name); text != said.end())
      out << YAML::Key << text->first << YAML::Value << text->second;
    else if (handlers_[k].put)
      write_field(out, key, handlers_[k], t);
    else if (handlers_[k].write)
      handlers_[k].write(out, t);
  }
}

}  // namespace ddpsim
