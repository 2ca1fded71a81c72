#include "tools/report/writers/page.hpp"

#include <iterator>

namespace ddpsim {

void Page::add(Paragraph paragraph) {
  if (!paragraph.text.empty()) blocks.emplace_back(std::move(paragraph));
}
void Page::add(Verbatim lines) {
  if (!lines.text.empty()) blocks.emplace_back(std::move(lines));
}
void Page::add(Drawing drawing) {
  blocks.emplace_back(std::move(drawing));
}
void Page::add(Picture picture) {
  blocks.emplace_back(std::move(picture));
}
void Page::add(Table table) {
  blocks.emplace_back(std::move(table));
}
void Page::add(Page more) {
  blocks.insert(blocks.end(), std::make_move_iterator(more.blocks.begin()),
                std::make_move_iterator(more.blocks.end()));
}

}  // namespace ddpsim
