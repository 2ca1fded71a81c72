#include "model/cost/calibration.hpp"

namespace ddpsim {

MeasuredWork measured(Operation operation, std::optional<Gemm> gemm, Bytes traffic, DType type,
                      const Spread& time, bool aside) {
  MeasuredWork measured;
  measured.operation = operation;
  measured.gemm = gemm;
  measured.traffic = traffic;
  measured.type = type;
  measured.aside = aside;
  measured.time = time;
  return measured;
}

}  // namespace ddpsim
