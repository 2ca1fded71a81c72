// The library that needs it.
extern "C" int ddpsim_test_needed();

extern "C" int ddpsim_test_needing() {
  return ddpsim_test_needed();
}
