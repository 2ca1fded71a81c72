#pragma once

#include "model/workload/architecture.hpp"

namespace ddpsim {

/// The transformer's part of build_workload: one layer for the embeddings, one per block, one for
/// the head and the loss (BertModel has no loss: its head is the pooler). Sets no name. Throws
/// std::invalid_argument if a number is not positive, heads do not divide d_model, kv_heads do not
/// divide heads (or are given to a family other than llama), or a sequence is longer than its
/// positions.
Workload transformer_workload(const TransformerShape& shape, const WorkloadSize& size);

}  // namespace ddpsim
