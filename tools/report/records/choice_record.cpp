#include "tools/report/records/choice_record.hpp"

#include "tools/report/records/step_fields.hpp"

namespace ddpsim {

void add_choice(Record& record, const CollectiveChoice& choice) {
  if (choice.algorithm) record.add(fields::algorithm, name_of(*choice.algorithm));
  if (choice.gloo) record.add(fields::algorithm, name_of(*choice.gloo));
  if (choice.copy_engines) record.add(fields::algorithm, "copy_engines");
  if (choice.protocol) record.add(fields::protocol, name_of(*choice.protocol));
  if (choice.channels > 0) record.add(fields::channels, choice.channels);
  if (choice.nics > 0) record.add(fields::nics, choice.nics);
  if (choice.bound != CollectiveBound::unknown)
    record.add(fields::collective_bound, name_of(choice.bound));
}

}  // namespace ddpsim
