#include "tools/report/csv.hpp"

namespace ddpsim {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

bool CsvReader::next(CsvRecord& record) {
  if (at_ >= text_.size()) return false;
  record.fields.assign(1, "");
  record.line = line_;
  complete_ = false;
  bool quoted = false;
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == '\n') ++line_;
    std::string& field = record.fields.back();
    if (c == '"') {
      if (quoted && at_ < text_.size() && text_[at_] == '"')
        field += text_[at_++];
      else
        quoted = !quoted;
    } else if (quoted) {
      field += c;
    } else if (c == ',') {
      record.fields.emplace_back();
    } else if (c == '\n') {
      complete_ = true;
      break;
    } else if (c != '\r' || at_ >= text_.size() || text_[at_] != '\n') {
      field += c;
    }
  }
  return true;
}

}  // namespace ddpsim
