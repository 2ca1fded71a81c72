#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/quantity.hpp"

namespace ddpsim {

/// A line of a log of nccl-tests, and what launchers, log stores and NCCL put before, into and
/// behind the program's own words.
///
/// The program prints a row in pieces: size, count, type, operation and root; then for each
/// placement a time, two bandwidths and a check. Between the pieces NCCL_DEBUG prints lines of its
/// own, and a launcher that marks what it passes on marks each piece:
///
///     [0]  1048576  262144  float  sum  -1[0] node-1:4978:4978 [0] NCCL INFO AllReduce: opCount 1
///     [0]    408.0    2.57    3.86      0[0]     402.3    2.61    3.91      0
///
/// So the first piece is known by two whole numbers before the name of a type, wherever in a line
/// they stand, and a piece with a time by itself: the algorithm bandwidth is the size over the time
/// (nccl-tests doc/PERFORMANCE.md), to the digits that are printed.

using LineWords = std::vector<std::string_view>;

/// Its words, apart from blanks. They are parts of `line`.
LineWords words_of(std::string_view line);

/// Where these words follow each other; none: nowhere.
std::optional<std::size_t> find_words(const LineWords& words, const LineWords& wanted);

/// Without what mpirun ("[1,0]<stdout>:", "[0] ") or srun (" 0: ") puts before a line, without its
/// '#', and without the colours of a terminal.
std::string bare_line(std::string_view line);

/// Where the columns of a log are.
struct Layout {
  std::size_t columns = 0;
  int reduction = -1, root = -1;
  /// The column of each placement's time; -1: not measured. Bandwidths follow it, then the check.
  int out_of_place = -1, in_place = -1;
  bool of_device = true;  ///< the times are those that the bandwidths are of: no "cputime"

  /// Columns before the times.
  std::size_t left() const;
  /// Columns of one placement.
  std::size_t width() const;
};

/// The layout that a header says, such as "size count type redop root time algbw busbw #wrong ...";
/// the header begins at the word `from`.
std::optional<Layout> layout_of(const LineWords& words, std::size_t from, bool only_in_place);

/// Where the header is missing: 13 columns since 2.13, before that none for the root, and neither
/// for all-gather; the same with one placement.
std::optional<Layout> layout_without_header(std::size_t columns, bool only_in_place);

/// Where the first piece of a row begins: whole numbers of bytes and of elements, and a type.
/// Behind other words it also needs the name of a reduction, unless the layout has none.
std::optional<std::size_t> row_in(const LineWords& words, const std::optional<Layout>& layout);

/// A word that others may follow without a blank: what the piece ends with, and whether more stands
/// behind it.
template <typename T>
struct Ended {
  T value{};
  bool joined = false;
};

/// A root, which is -1 of an operation that has none.
std::optional<Ended<int>> root_in(std::string_view word);
/// "sum", "prod", "none"; the whole word if it begins with none of those that nccl-tests knows.
Ended<std::string> reduction_in(std::string_view word);

/// A printed number and how far rounding may have moved it; 0 of none.
struct Printed {
  double value = 0, margin = 0;
};
Printed printed_number(std::string_view text);

/// Can the two bandwidths be those of the size and the time, as printed?
bool agree(Bytes size, Printed time, Printed algorithm, Printed bus);

/// Is it a number, or the "N/A" of one?
bool is_number(std::string_view word);

/// Where in the words from `from` on there is a piece of `layout` with a time of `size` bytes whose
/// bandwidth is that of the time.
std::optional<std::size_t> piece_in(const LineWords& words, std::size_t from, const Layout& layout,
                                    Bytes size);

/// Does a word that says how many results were wrong, alone or joined with another, say any? Not
/// "N/A", nor the error that early versions print instead.
bool says_wrong(std::string_view word);

}  // namespace ddpsim
