#pragma once

#include <cstdint>
#include <string>

#include "tools/explore/explorer.hpp"
#include "tools/explore/http_server.hpp"

namespace ddpsim {

/// A random word of 128 bits, as hexadecimal digits.
std::string random_token();

/// What the server has to offer, all of it below `/TOKEN/`:
///
///     GET  /TOKEN/              the page
///     GET  /TOKEN/explore.js    and what else the page is made of
///     GET  /TOKEN/controls      Explorer::controls
///     POST /TOKEN/answer        Explorer::answer of the body
///     POST /TOKEN/save          Explorer::save of the body
///
/// Anybody on this machine, and any page that a browser has open, can reach a port of 127.0.0.1. So
/// only those who know the token are answered, and of them
///
/// * only those who name this server as the `Host`: a page of another name that was made to lead
///   here (DNS rebinding) has that other name there;
/// * only pages of this server itself: what another page sends has that page's `Origin`. A POST
///   without an `Origin`, or of something else than JSON, comes from no page of ours.
///
/// No part of a target is ever a path of a file. For several threads at once.
class Site {
 public:
  /// `explorer` has to outlive it.
  Site(const Explorer& explorer, std::string token, std::uint16_t port);

  /// "http://127.0.0.1:PORT/TOKEN/"
  std::string address() const;

  HttpResponse answer(const HttpRequest& request) const;

 private:
  HttpResponse resource(const std::string& name) const;
  HttpResponse deed(const std::string& name, const HttpRequest& request) const;

  const Explorer& explorer_;
  std::string token_;
  std::uint16_t port_;
};

}  // namespace ddpsim
