#pragma once

#include "model/kernel/machine.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// What the law of tiles takes of a kind of product.
struct ProductRates {
  double rate = 0;           ///< FLOP/s of the whole device
  double operand_rate = 0;   ///< bytes/s that one multiprocessor takes of operands
  double per_tile = 0;       ///< seconds, prologue and epilogue
  double element = 4;        ///< bytes of an operand's element
  double memory_rate = 4.2;  ///< TB/s on the H200
  double most_parts = 8;     ///< that the sum is cut into
};

/// The law of product_law.cpp, without its start.
double tiled_seconds(const Gemm& gemm, DType type, double bytes, const ProductRates& rates,
                     const Machine& machine);

/// FLOP/s of large products. Throws std::invalid_argument if the device does not multiply them.
double rate_of_products(DType type, const Machine& machine);

}  // namespace ddpsim
