// A library that another one needs, and that lies where no loader looks.
extern "C" int ddpsim_test_needed() {
  return 7;
}
