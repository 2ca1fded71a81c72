#include "tools/import/json_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <zlib.h>

#include "scenarios/reader/text/input_error.hpp"

namespace ddpsim {
namespace {

constexpr int deepest = 64;
constexpr std::size_t longest_token = 1 << 20;
constexpr std::uint64_t most_text = std::uint64_t{16} << 30;

/// The bytes of a file, unpacked. The JSON library keeps the text since the last string or number
/// began, and a bit for each open bracket; both are bounded here, before it sees them.
class Text {
 public:
  Text(const std::filesystem::path& file, const std::function<void(double)>& progress)
      : name_(file.string()), progress_(progress), buffer_(std::size_t{256} * 1024) {
    std::error_code error;
    if (!std::filesystem::exists(file, error)) refuse("no such file");
    if (!std::filesystem::is_regular_file(file, error)) refuse("not a file");
    packed_size_ = std::max<std::uintmax_t>(std::filesystem::file_size(file, error), 1);
    errno = 0;
    file_.reset(gzopen(name_.c_str(), "rb"));
    if (!file_) refuse(fmt::format("cannot be read: {}", std::strerror(errno)));
    gzbuffer(file_.get(), 256 * 1024);
  }

  bool at_end() {
    if (next_ == end_) fill();
    return next_ == end_;
  }
  char current() const { return *next_; }
  void advance() { ++next_; }

  [[noreturn]] void refuse(std::string_view problem) const {
    throw InputError(fmt::format("{}: {}", name_, problem));
  }
  /// Refuses what stands just before `next_`.
  [[noreturn]] void refuse_here(std::string_view problem) const { refuse_at(next_, problem); }

 private:
  [[noreturn]] void refuse_at(const char* place, std::string_view problem) const {
    std::uint64_t line = line_, column = column_;
    for (const char* at = buffer_.data(); at < place; ++at) {
      column = *at == '\n' ? 0 : column + 1;
      if (*at == '\n') ++line;
    }
    throw InputError(
        fmt::format("{}:{}:{}: {}", name_, line, std::max<std::uint64_t>(column, 1), problem));
  }

  void fill() {
    if (ended_) return;
    for (const char* at = buffer_.data(); at < end_; ++at) {
      column_ = *at == '\n' ? 0 : column_ + 1;
      if (*at == '\n') ++line_;
    }
    const int got = gzread(file_.get(), buffer_.data(), static_cast<unsigned>(buffer_.size()));
    int error = Z_OK;
    const char* text = gzerror(file_.get(), &error);
    next_ = buffer_.data();
    end_ = next_ + std::max(got, 0);
    if (error == Z_BUF_ERROR && got <= 0)
      refuse("the gzip data end too early: the file is cut off");
    if (got < 0)
      refuse(error == Z_ERRNO ? fmt::format("cannot be read: {}", std::strerror(errno))
                              : fmt::format("damaged gzip data ({})", text));
    ended_ = got == 0;
    total_ += static_cast<std::uint64_t>(got);
    if (total_ > most_text) refuse("more than 16 GiB of text: profile fewer steps");
    inspect();
    if (progress_)
      progress_(static_cast<double>(gzoffset(file_.get())) / static_cast<double>(packed_size_));
  }

  void inspect() {
    for (const char* at = next_; at < end_; ++at) {
      const char c = *at;
      if (++token_ > longest_token)
        refuse_at(at, "more than 1 MiB without an end: is this a profiler's trace?");
      if (in_string_) {
        if (escaped_)
          escaped_ = false;
        else if (c == '\\')
          escaped_ = true;
        else if (c == '"')
          in_string_ = false;
        continue;
      }
      const bool starts = (c >= '0' && c <= '9') || c == '-';
      if (starts && !in_number_) token_ = 0;
      in_number_ = starts || (in_number_ && (c == '.' || c == 'e' || c == 'E' || c == '+'));
      if (c == '"') {
        in_string_ = true;
        token_ = 0;
      } else if (c == '[' || c == '{') {
        if (++depth_ > deepest)
          refuse_at(at + 1,
                    gzdirect(file_.get()) == 1
                        ? "nested too deeply: is this a profiler's trace?"
                        : "nested too deeply: is this a profiler's trace, and its gzip data "
                          "undamaged?");
      } else if (c == ']' || c == '}') {
        --depth_;
      }
    }
  }

  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };

  std::string name_;
  const std::function<void(double)>& progress_;
  std::unique_ptr<gzFile_s, Close> file_;
  std::uintmax_t packed_size_ = 1;
  std::vector<char> buffer_;
  const char* next_ = buffer_.data();
  const char* end_ = next_;
  bool ended_ = false;
  std::uint64_t total_ = 0, line_ = 1, column_ = 0;  ///< of the beginning of the buffer
  std::size_t token_ = 0;  ///< bytes since the last string or number began
  int depth_ = 0;
  bool in_string_ = false, in_number_ = false, escaped_ = false;
};

/// A Text as the JSON library wants its input.
class TextIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  explicit TextIterator(Text* text) : text_(text) {}
  char operator*() const { return text_->current(); }
  TextIterator& operator++() {
    text_->advance();
    return *this;
  }
  TextIterator operator++(int) {
    const TextIterator before = *this;
    text_->advance();
    return before;
  }
  /// Only ever asked of an end.
  bool operator==(const TextIterator&) const { return text_->at_end(); }
  bool operator!=(const TextIterator&) const { return !text_->at_end(); }

 private:
  Text* text_;
};

}  // namespace

void stream_json(const std::filesystem::path& file, JsonEvents& events,
                 const std::function<void(double)>& progress) {
  Text text(file, progress);
  if (text.at_end()) text.refuse("empty file: expected JSON");
  if (nlohmann::json::sax_parse(TextIterator(&text), TextIterator(&text), &events)) return;
  if (text.at_end()) text.refuse_here("the JSON ends too early: the file is cut off");
  text.refuse_here("not JSON");
}

}  // namespace ddpsim
