#include "tools/explore/site.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tools/explore/embedded.hpp"

namespace ddpsim {
namespace {

constexpr const char* json_type = "application/json";
constexpr std::array resources{"", "explore.css", "explore.js", "page.js", "controls"};
constexpr std::array deeds{"answer", "tasks", "save"};

HttpResponse refused(unsigned status, std::string_view why) {
  return {status, "text/plain; charset=utf-8", fmt::format("{}\n", why)};
}

/// Takes as long whatever the first difference is.
bool same(std::string_view left, std::string_view right) {
  if (left.size() != right.size()) return false;
  unsigned different = 0;
  for (std::size_t i = 0; i < left.size(); ++i)
    different |= static_cast<unsigned>(left[i] ^ right[i]);
  return different == 0;
}

/// "application/json", whatever its parameters are.
bool is_json(const std::string& content_type) {
  return content_type.substr(0, content_type.find(';')) == json_type;
}

template <typename Names>
bool is_among(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::string random_token() {
  std::random_device entropy;  // the kernel's
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", entropy());
  return token;
}

Site::Site(const Explorer& explorer, std::string token, std::uint16_t port)
    : explorer_(explorer), token_(std::move(token)), port_(port) {}

std::string Site::address() const {
  return fmt::format("http://127.0.0.1:{}/{}/", port_, token_);
}

HttpResponse Site::answer(const HttpRequest& request) const {
  const std::array hosts{fmt::format("127.0.0.1:{}", port_), fmt::format("localhost:{}", port_)};
  if (!is_among(hosts, request.host))
    return refused(403, "this is not the host that was asked for");
  if (!request.origin.empty() && request.origin != "http://" + request.host)
    return refused(403, "pages of other origins get no answer");
  const std::size_t end = request.target.find('/', 1);
  if (request.target.empty() || request.target[0] != '/' || end == std::string::npos ||
      !same(std::string_view(request.target).substr(1, end - 1), token_))
    return refused(403, "the address lacks the token that ddpsim explore printed");
  const std::string name = request.target.substr(end + 1);
  if (is_among(resources, name))
    return request.method == "GET" ? resource(name) : refused(405, "GET it");
  if (is_among(deeds, name))
    return request.method == "POST" ? deed(name, request) : refused(405, "POST it");
  return refused(404, "there is no such page");
}

HttpResponse Site::resource(const std::string& name) const {
  if (name == "explore.css")
    return {200, "text/css; charset=utf-8", std::string(page_css) + std::string(explore_css)};
  if (name == "explore.js") return {200, "text/javascript; charset=utf-8", std::string(explore_js)};
  if (name == "page.js") return {200, "text/javascript; charset=utf-8", std::string(page_js)};
  if (name == "controls") return {200, json_type, explorer_.controls()};
  return {200, "text/html; charset=utf-8", std::string(explore_html)};
}

HttpResponse Site::deed(const std::string& name, const HttpRequest& request) const {
  if (request.origin.empty()) return refused(403, "a POST has to tell its origin");
  if (!is_json(request.content_type)) return refused(415, "send application/json");
  return {200, json_type,
          name == "save"    ? explorer_.save(request.body)
          : name == "tasks" ? explorer_.tasks(request.body)
                            : explorer_.answer(request.body)};
}

}  // namespace ddpsim
