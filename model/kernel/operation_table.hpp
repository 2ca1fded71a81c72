#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "model/kernel/kernel_law.hpp"

namespace ddpsim {

/// A single operation as it was measured: what it is, and how long it kept the device busy.
struct MeasuredOperation {
  DeviceKernel kernel;
  Duration time;
};

/// What an operation's class holds fixed, and its size.
struct OperationPlace {
  std::array<std::int64_t, 10> of{};
  double size = 0;

  auto operator<=>(const OperationPlace&) const = default;
};

/// Operations are of one class if everything about them is equal but one size: the pictures of a
/// convolution (that of the gradient of a weight of one pixel may be the exchanged one's, which is
/// the same product); the rows of a product (of a weight's gradient, which has no operand along k,
/// the length of the sum); heads of all samples of attention; the rows of norms and softmax, the
/// outputs of a pool; the elements of a batch norm's channels; the bytes of what streams through
/// memory.
OperationPlace place_of(const DeviceKernel& kernel);

/// Measured operations: first by class, within a class by size.
using OperationRows = std::map<decltype(OperationPlace::of), std::map<double, MeasuredOperation>>;
/// The rows of a table. Where two operations have the same place, the first one counts.
OperationRows rows_of(const std::vector<MeasuredOperation>& operations);

/// Single operations that were measured on a device. What the table knows goes before the law of
/// the class.
///
/// Between two measured sizes the time is taken to be linear. Beyond the ends the nearest row goes
/// on as the law says, up to a factor of four in size; farther the law stands alone.
class OperationTable {
 public:
  /// `rows` is called whenever a kernel is looked for: a table is read when it is needed. What it
  /// throws, `find` throws.
  /// `measured_on`: the device that was measured, where the table is for another one. Each time is
  /// then multiplied by what the laws say of that other device over what they say of this one.
  explicit OperationTable(std::function<const OperationRows&()> rows,
                          std::shared_ptr<const Device> measured_on = nullptr)
      : rows_(std::move(rows)), measured_on_(std::move(measured_on)) {}

  struct Found {
    Duration time{};
    KernelSource source = KernelSource::measured;
  };
  /// The kernel's time by the table; none if the table does not know the kernel. `law`: what the
  /// law says of the kernel on `device`.
  std::optional<Found> find(const DeviceKernel& kernel, Duration law, const Device& device) const;

  /// This table for another device: its rows were measured on `measured_on`.
  OperationTable scaled_from(std::shared_ptr<const Device> measured_on) const {
    return OperationTable(rows_, std::move(measured_on));
  }
  /// The device on which the rows were measured; null: the device that has the table.
  const std::shared_ptr<const Device>& measured_on() const { return measured_on_; }

 private:
  std::function<const OperationRows&()> rows_;
  std::shared_ptr<const Device> measured_on_;
};

}  // namespace ddpsim
