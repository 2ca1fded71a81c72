#pragma once

// The vocabulary of results. A command computes, puts its figures into records, and is done: what
// prints them (text_writer, csv, json_writer, markdown_writer) knows records and no figure by name.
//
//     Field       describes a figure, once for all places it is printed in: key, heading, unit,
//                 meaning
//     FieldValue  what was found: a number, a text, nothing, a list, a record
//     Record      fields with their values, in order: an object of JSON
//     Table       records of one kind below one another: rows of a table or of a CSV file

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ddpsim {

/// What stands in a field. A reader of files goes by it: "1" in a column of texts is a text.
enum class ValueKind : std::uint8_t { text, whole, real, flag, list, record };

/// Which of two values is the better one.
enum class Better : std::uint8_t { neither, low, high };

/// Who is shown a field: tables are for people, JSON and CSV for programs.
enum class Audience : std::uint8_t { everybody, people, programs };

/// How a table writes a value.
struct Look {
  enum class Style : std::uint8_t {
    plain,  ///< by the pattern
    size,   ///< of bytes: "25 MiB"
    bar     ///< from 0 to 1, as a row of #; of a list, with what follows behind it
  };
  std::string_view pattern = "{}";  ///< of fmt, for the number times `scale`
  double scale = 1;
  std::string_view absent = "-";    ///< where there is nothing
  std::string_view between = ", ";  ///< the values of a list
  Style style = Style::plain;
  bool left = false;  ///< the cells begin below one another; the first column's always do

  constexpr Look to_the_left() const {
    Look look = *this;
    look.left = true;
    return look;
  }
  constexpr Look or_blank() const {
    Look look = *this;
    look.absent = "";
    return look;
  }
};
/// How long a column stays in a table that is too wide for its page: the least important ones go
/// first. Any number will do; these are steps to choose from.
enum class Importance : std::uint8_t { least = 1, little = 3, usual = 5, much = 7, most = 9 };

/// Describes a figure. Fields are constants; the texts are not owned, and those that are no
/// literals (the keys of a sweep) must outlive what is made of them.
struct Field {
  std::string_view name{};   ///< key in JSON, column of a CSV: "step_ms"
  std::string_view label{};  ///< heading of a table's column: "step ms"
  ValueKind kind = ValueKind::text;
  std::string_view unit{};  ///< "ms", "bytes"; "" of what has none
  std::string_view hint{};  ///< a sentence: what the value means
  Better better = Better::neither;
  Look look{};
  Importance importance = Importance::usual;
  Audience audience = Audience::everybody;

  constexpr Field named(std::string_view other) const {
    Field field = *this;
    field.name = other;
    return field;
  }
  constexpr Field labelled(std::string_view heading) const {
    Field field = *this;
    field.label = heading;
    return field;
  }
  constexpr Field with(Look other) const {
    Field field = *this;
    field.look = other;
    return field;
  }
  constexpr Field with(Importance other) const {
    Field field = *this;
    field.importance = other;
    return field;
  }
  constexpr Field only_for(Audience other) const {
    Field field = *this;
    field.audience = other;
    return field;
  }
};

struct NamedValue;
struct FieldValue;

/// Fields with their values, in order.
struct Record {
  std::vector<NamedValue> entries;

  // Defined below, where NamedValue is known.
  Record();
  Record(const Record&);
  Record(Record&&) noexcept;
  Record& operator=(const Record&);
  Record& operator=(Record&&) noexcept;
  ~Record();

  Record& add(const Field& field, FieldValue value);
  Record& add(const Field&& field, FieldValue value) = delete;  // it would not outlive the record
  Record& add(Record more);
  /// The value under that field's name; null if there is none.
  const FieldValue* find(const Field& field) const;
  bool operator==(const Record&) const;
};

struct Nothing {
  bool operator==(const Nothing&) const = default;
};
using List = std::vector<FieldValue>;
/// Texts under names that are not ours, such as the keys of a scenario.
using Texts = std::vector<std::pair<std::string, std::string>>;

struct FieldValue {
  std::variant<Nothing, bool, std::int64_t, double, std::string, List, Record, Texts> held;

  FieldValue() = default;
  template <std::same_as<bool> Flag>
  FieldValue(Flag flag) : held(flag) {}
  template <std::integral Whole>
  requires(!std::same_as<Whole, bool>) FieldValue(Whole whole)
      : held(static_cast<std::int64_t>(whole)) {}
  FieldValue(double real) : held(real) {}
  FieldValue(std::string text) : held(std::move(text)) {}
  FieldValue(std::string_view text) : held(std::string(text)) {}
  FieldValue(const char* text) : held(std::string(text)) {}
  FieldValue(List list) : held(std::move(list)) {}
  FieldValue(Record record) : held(std::move(record)) {}
  FieldValue(Texts texts) : held(std::move(texts)) {}
  template <typename Other>
  FieldValue(const std::optional<Other>& other) {
    if (other) *this = FieldValue(*other);
  }

  /// Is there no value? A number that is not finite (0 / 0) counts as nothing, for every writer.
  bool is_nothing() const;
  const std::string* text() const { return std::get_if<std::string>(&held); }
  /// A number, whole or not.
  std::optional<double> number() const;
  bool operator==(const FieldValue&) const;
};

struct NamedValue {
  const Field* field = nullptr;
  FieldValue value;
  bool operator==(const NamedValue&) const = default;
};

inline Record::Record() = default;
inline Record::Record(const Record&) = default;
inline Record::Record(Record&&) noexcept = default;
inline Record& Record::operator=(const Record&) = default;
inline Record& Record::operator=(Record&&) noexcept = default;
inline Record::~Record() = default;

/// The values of one row, as many as there are columns.
using TableRow = std::vector<FieldValue>;

/// The values of those columns; what the record lacks is nothing.
TableRow row_of(const std::vector<Field>& columns, const Record& record);

/// Rows of the same fields, with what is said of them above and below.
struct Table {
  std::vector<Field> columns;
  std::vector<TableRow> rows{};
  std::string title{};  ///< lines above
  std::string notes{};  ///< lines below

  void add(TableRow row);
  void add(const Record& record) { rows.push_back(row_of(columns, record)); }
  /// Where the column of that name stands. Throws std::out_of_range if there is none.
  std::size_t index_of(const Field& field) const;
};

/// Takes the column out where no row has a value in it.
void drop_if_empty(Table& table, std::size_t column);

}  // namespace ddpsim
