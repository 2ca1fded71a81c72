#include "sim/engine/flights.hpp"

#include <algorithm>

namespace ddpsim {
namespace {

/// Newton's steps for the factor by which transfers take longer.
constexpr int most_newton_steps = 20;
constexpr double close = 1e-13;

}  // namespace

std::uint32_t Flights::add_meeting(std::vector<std::uint32_t> members) {
  const auto number = static_cast<std::uint32_t>(meetings_.size());
  for (const std::uint32_t member : members) meetings_of_[member].push_back(number);
  meetings_.push_back({.members = std::move(members)});
  return number;
}

void Flights::arrive(std::uint32_t meeting, std::uint32_t serial, Member member,
                     const WorkCost& cost, Instant now) {
  const std::uint32_t number = flight_of(meeting, serial);
  Flight& flight = flights_[number];
  flight.arrived.push_back(member);
  flight.work = std::max(flight.work, cost.work);
  flight.latency_time = std::max(flight.latency_time, cost.latency);
  flight.links = both(flight.links, cost.links);
  flight.beside_compute =
      std::max(flight.beside_compute, static_cast<double>(cost.beside.communication));
  standing_[member.rank].push_back({number, &cost});
  if (flight.arrived.size() == meetings_[meeting].members.size()) begin(flight, number, now);
}

void Flights::begin(Flight& flight, std::uint32_t number, Instant now) {
  begun.insert(begun.end(), flight.arrived.begin(), flight.arrived.end());
  flight.latency = flight.work > Duration::zero()
                       ? std::min(1.0, in_seconds(flight.latency_time) / in_seconds(flight.work))
                       : 0;
  flight.transferring = flight.fresh = changed_ = true;
  flight.transfer.begin(flight.work, now);
  transferring_.push_back(number);
}

void Flights::computes(std::uint32_t rank, bool yes) {
  for (const std::uint32_t meeting : meetings_of_[rank])
    meetings_[meeting].computing += yes ? 1 : -1;
  changed_ = changed_ || !transferring_.empty();
}

double Flights::felt(std::uint32_t rank, const WorkCost& kernel) const {
  double slowdown = 1;
  for (const Standing& each : standing_[rank]) {
    const Interference& beside = each.cost->beside;
    slowdown = std::max<double>(
        slowdown, flights_[each.flight].transferring
                      ? compute_slowdown(beside, kernel.memory_fraction, kernel.launch_rate)
                      : compute_slowdown(beside, 0));
  }
  return slowdown;
}

void Flights::advance(Instant now) {
  if (now < next_) return;
  for (std::size_t i = 0; i < transferring_.size();) {
    const std::uint32_t number = transferring_[i];
    if (flights_[number].ends > now) {
      ++i;
      continue;
    }
    transferring_[i] = transferring_.back();
    transferring_.pop_back();
    end(number);
  }
  changed_ = true;
}

void Flights::end(std::uint32_t number) {
  Flight& flight = flights_[number];
  for (const Member& member : flight.arrived) {
    ended.push_back(member);
    std::vector<Standing>& standing = standing_[member.rank];
    const auto here = std::ranges::find(standing, number, &Standing::flight);
    *here = standing.back();
    standing.pop_back();
  }
  std::vector<std::uint32_t>& flights = meetings_[flight.meeting].flights;
  const auto here = std::ranges::find(flights, number);
  *here = flights.back();
  flights.pop_back();
  flight.arrived.clear();
  flight.transferring = false;
  free_.push_back(number);
}

void Flights::settle(Instant now) {
  if (!changed_) return;
  changed_ = false;
  next_ = never;
  const bool alone = transferring_.size() == 1;
  const bool all_share = meetings_.size() == 1;
  double sharing = 1;
  for (std::size_t i = 0; i < transferring_.size(); ++i) {
    Flight& flight = flights_[transferring_[i]];
    if (!alone && (i == 0 || !all_share)) sharing = transfers_slowed(flight);
    double slowdown = meetings_[flight.meeting].computing > 0 ? flight.beside_compute : 1;
    slowdown *= flight.latency + (1 - flight.latency) * sharing;
    const bool slowed = slowdown != flight.transfer.slowdown;
    if (slowed) flight.transfer.change(slowdown, now);
    if (slowed || flight.fresh) flight.ends = flight.transfer.end();
    flight.fresh = false;
    next_ = std::min(next_, flight.ends);
  }
}

/// How many times longer the transfer of a flight takes: as the rank has it that has the most on
/// its links.
double Flights::transfers_slowed(const Flight& flight) const {
  double slowest = 1;
  for (const Member& member : flight.arrived) {
    slowest = std::max(slowest, slowed_at(standing_[member.rank], flight.links));
    if (meetings_.size() == 1) break;  // all have the same
  }
  return slowest;
}

/// How many times longer transfers take on these links of a rank, so that those it stands at
/// together fill them and move no more: each fills them for the part of its time that is transfer,
/// and these parts must not be more than the whole. 1: they fit as they are.
double Flights::slowed_at(const std::vector<Standing>& standing, FilledLinks links) const {
  // The filled parts fall with s and are convex in s, so steps from below never overshoot.
  double s = 1;
  for (int step = 0; step < most_newton_steps; ++step) {
    double filled = 0, slope = 0;
    for (const Standing& each : standing) {
      const Flight& flight = flights_[each.flight];
      const double transfer = 1 - flight.latency, time = flight.latency + transfer * s;
      if (!flight.transferring || transfer <= 0 || !share(flight.links, links)) continue;
      filled += transfer / time;
      slope -= transfer * transfer / (time * time);
    }
    if (filled <= 1 + close) break;
    s += (filled - 1) / -slope;
  }
  return s;
}

/// Where the `serial`-th flight of a meeting is under way, or now is.
std::uint32_t Flights::flight_of(std::uint32_t meeting, std::uint32_t serial) {
  for (const std::uint32_t number : meetings_[meeting].flights)
    if (flights_[number].serial == serial) return number;
  std::uint32_t number = 0;
  if (free_.empty()) {
    number = static_cast<std::uint32_t>(flights_.size());
    flights_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  Flight& flight = flights_[number];
  flight.meeting = meeting;
  flight.serial = serial;
  flight.work = flight.latency_time = Duration::zero();
  flight.links = FilledLinks::none;
  flight.beside_compute = 1;
  meetings_[meeting].flights.push_back(number);
  return number;
}

}  // namespace ddpsim
