#pragma once

#include <string>

#include "model/cost/calibration.hpp"
#include "tools/report/records/record.hpp"

namespace ddpsim {

/// "rank 5 computes 1.3 times as long": the exceptions of a cluster, the first of many; "" where
/// there are none. NICs that change nothing are left out.
std::string exceptions_text(const CalibratedCluster& cluster);

/// The exceptions that compute otherwise, and the NICs that set the pace of the network.
std::string slow_ranks_text(const CalibratedCluster& cluster);
std::string slow_nics_text(const CalibratedCluster& cluster);

/// One of them as a record, for programs.
Record exception_record(const RankException& exception);

/// Why these NICs of one node change nothing; "" where they do.
std::string why_nic_idles(const CalibratedCluster& cluster, Bandwidth nic);

}  // namespace ddpsim
