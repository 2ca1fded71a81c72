#include "tools/report/writers/json_writer.hpp"

namespace ddpsim {
namespace {

using Json = nlohmann::ordered_json;

struct ToJson {
  Json operator()(const Nothing&) const { return nullptr; }
  Json operator()(bool flag) const { return flag; }
  Json operator()(std::int64_t whole) const { return whole; }
  Json operator()(double real) const { return real; }
  Json operator()(const std::string& text) const { return text; }
  Json operator()(const List& list) const {
    Json array = Json::array();
    for (const FieldValue& each : list) array.push_back(json_of(each));
    return array;
  }
  Json operator()(const Record& record) const { return json_of(record); }
  Json operator()(const Texts& texts) const {
    Json object = Json::object();
    for (const auto& [key, text] : texts) object[key] = text;
    return object;
  }
};

}  // namespace

Json json_of(const FieldValue& value) {
  return value.is_nothing() ? Json(nullptr) : std::visit(ToJson{}, value.held);
}

Json json_of(const Record& record) {
  Json object = Json::object();
  for (const NamedValue& entry : record.entries)
    if (entry.field->audience != Audience::people)
      object[std::string(entry.field->name)] = json_of(entry.value);
  return object;
}

Json json_of(const std::vector<Field>& columns, const TableRow& row) {
  Json object = Json::object();
  for (std::size_t c = 0; c < columns.size(); ++c)
    if (columns[c].audience != Audience::people)
      object[std::string(columns[c].name)] = json_of(row[c]);
  return object;
}

Json json_of(const Table& table) {
  Json array = Json::array();
  for (const TableRow& row : table.rows) array.push_back(json_of(table.columns, row));
  return array;
}

std::string one_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<FieldValue> value_from_json(ValueKind kind, const Json& json) {
  if (json.is_null()) return FieldValue();
  switch (kind) {
    case ValueKind::text:
      if (json.is_string()) return FieldValue(json.get<std::string>());
      return std::nullopt;
    case ValueKind::whole:
      if (json.is_number_integer()) return FieldValue(json.get<std::int64_t>());
      return std::nullopt;
    case ValueKind::real:
      if (json.is_number()) return FieldValue(json.get<double>());
      return std::nullopt;
    case ValueKind::flag:
      if (json.is_boolean()) return FieldValue(json.get<bool>());
      return std::nullopt;
    case ValueKind::list:
    case ValueKind::record:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace ddpsim
