#include "tools/command/command.hpp"

int main(int count, char** values) {
  return ddpsim::run_program({values + 1, values + count});
}
