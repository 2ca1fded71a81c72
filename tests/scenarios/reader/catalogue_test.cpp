#include "scenarios/reader/catalogue/catalogue.hpp"

#include <algorithm>
#include <map>

#include <catch2/catch.hpp>

#include "scenarios/reader/cluster/link_reader.hpp"
#include "scenarios/reader/explain/catalogue_list.hpp"
#include "scenarios/reader/workload/workload_reader.hpp"
#include "tests/scenarios/reader/refusal.hpp"

namespace ddpsim {
namespace {

bool holds(std::string_view kind, const std::string& name) {
  const std::vector<std::string> names = catalogue_names(kind);
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST_CASE("the catalogue holds every promised device", "[scenarios][catalogue]") {
  for (const char* name : {"t4",
                           "v100",
                           "a10",
                           "a100-40",
                           "a100-80",
                           "h100-sxm",
                           "h100-pcie",
                           "h200",
                           "b200",
                           "rtx2080ti",
                           "rtx3090",
                           "rtx4090",
                           "rtx5090",
                           "rtx-pro-6000",
                           "generic-cpu",
                           "gh200",
                           "a40",
                           "l40s",
                           "l4",
                           "mi300x",
                           "mi250x",
                           "gb200",
                           "a100-pcie-40",
                           "a100-pcie-80",
                           "rtx-6000-ada",
                           "l40",
                           "h20",
                           "quadro-rtx-6000",
                           "quadro-rtx-8000",
                           "titan-rtx"}) {
    CAPTURE(name);
    CHECK(holds(device_entries, name));
  }
}

TEST_CASE("the catalogue holds every promised link", "[scenarios][catalogue]") {
  for (const char* name : {"nvlink2",
                           "nvlink3",
                           "nvlink4",
                           "nvlink5",
                           "pcie3",
                           "pcie4",
                           "pcie5",
                           "ethernet-10g",
                           "ethernet-25g",
                           "ethernet-40g",
                           "ethernet-100g",
                           "ethernet-200g",
                           "ethernet-400g",
                           "ethernet-800g",
                           "ib-hdr",
                           "ib-ndr",
                           "efa-100g",
                           "infinity-fabric-mi300x",
                           "infinity-fabric-mi250x",
                           "ethernet-1g",
                           "slingshot-11",
                           "nvlink3-bridge",
                           "nvlink2-bridge"}) {
    CAPTURE(name);
    CHECK(holds(link_entries, name));
  }
}

TEST_CASE("every device of the catalogue reads, has a source and can do what training needs",
          "[scenarios][catalogue]") {
  const std::vector<Device> devices = list_devices();
  REQUIRE(devices.size() == catalogue_names(device_entries).size());
  for (const Device& device : devices) {
    CAPTURE(device.name);
    CHECK(!device.source.empty());
    CHECK(device.memory_bandwidth.bytes_per_second > 0);
    CHECK(device.memory.count > 0);
    CHECK(device.peak_of(DType::fp32).flops_per_second > 0);
    CHECK(device.synchronous == (device.name == "generic-cpu"));
  }
}

TEST_CASE("a device of the catalogue has the memory that its driver reports",
          "[scenarios][catalogue]") {
  // What nvidia-smi prints as the total, in MiB. A data sheet's 80 GB are 74.5 GiB if GB are 10^9
  // bytes, and the card has more.
  const std::map<std::string, std::int64_t> totals{
      {"h100-sxm", 81559}, {"h200", 143771}, {"a100-40", 40960}, {"a100-80", 81920},
      {"l4", 23034},       {"t4", 15360},    {"rtx4090", 24564}, {"b200", 183359}};
  for (const Device& device : list_devices()) {
    CAPTURE(device.name);
    const auto total = totals.find(device.name);
    if (total != totals.end()) CHECK(device.memory == total->second * MiB);
  }
}

TEST_CASE("two RTX 3090 on a bridge copy to each other, though they cannot over PCIe",
          "[scenarios][catalogue]") {
  // 4 links of 14.0625 GB/s each way (GA102 white paper).
  const Link bridge = read_link(Yaml::of_text("nvlink3-bridge"));
  CHECK(bridge.kind == LinkKind::nvlink);
  CHECK(bridge.bandwidth.bytes_per_second == Approx(56.25e9));
  CHECK_FALSE(bridge.nvswitch);
}

TEST_CASE("every link of the catalogue reads, has a source, a latency and a bandwidth",
          "[scenarios][catalogue]") {
  const std::vector<Link> links = list_links();
  REQUIRE(links.size() == catalogue_names(link_entries).size());
  for (const Link& link : links) {
    CAPTURE(link.name);
    CHECK(!link.source.empty());
    CHECK(link.latency > Duration::zero());
    CHECK(link.bandwidth.bytes_per_second > 0);
    // AMD's links between GPUs are of no kind that NCCL's model knows.
    CHECK((link.kind == LinkKind::plain) == link.name.starts_with("infinity-fabric"));
  }
}

TEST_CASE("every ready cluster of the catalogue is one node as its data sheet says",
          "[scenarios][catalogue]") {
  // GPUs of a node, and Gbit/s of all its NICs that carry gradients.
  struct Sheet {
    std::string device;
    int ranks = 0;
    double gigabits = 0;
  };
  const std::map<std::string, Sheet> sheets{{"dgx-a100", {"a100-80", 8, 8 * 200}},
                                            {"dgx-h100", {"h100-sxm", 8, 8 * 400}},
                                            {"dgx-b200", {"b200", 8, 8 * 400}},
                                            {"gb200-nvl72", {"gb200", 72, 18 * 4 * 400}},
                                            {"aws-p4d", {"a100-40", 8, 400}},
                                            {"aws-p5", {"h100-sxm", 8, 3200}},
                                            {"azure-nd-h100-v5", {"h100-sxm", 8, 8 * 400}},
                                            {"gcp-a3-high", {"h100-sxm", 8, 4 * 200}},
                                            {"gcp-a3-mega", {"h100-sxm", 8, 8 * 200}}};
  const std::vector<ReadyCluster> clusters = list_clusters();
  CHECK(clusters.size() == sheets.size());
  for (const ReadyCluster& ready : clusters) {
    CAPTURE(ready.name);
    CHECK(!ready.source.empty());
    const Cluster& cluster = ready.cluster;
    const Sheet& sheet = sheets.at(ready.name);
    CHECK(cluster.nodes == 1);
    CHECK(cluster.ranks_per_node == sheet.ranks);
    CHECK(cluster.device.name == sheet.device);
    CHECK(cluster.intra_node.kind == LinkKind::nvlink);
    CHECK(cluster.inter_node.bandwidth.bytes_per_second * nics_per_node(cluster) ==
          Approx(sheet.gigabits * 0.125e9));
  }
}

TEST_CASE("an Ethernet link moves the bits its name says", "[scenarios][catalogue]") {
  // 1 Gbit/s is 0.125 GB/s.
  const std::map<std::string, double> gigabits{{"ethernet-1g", 1},     {"ethernet-10g", 10},
                                               {"ethernet-25g", 25},   {"ethernet-40g", 40},
                                               {"ethernet-100g", 100}, {"ethernet-200g", 200},
                                               {"ethernet-400g", 400}, {"ethernet-800g", 800}};
  for (const auto& [name, rate] : gigabits) {
    CAPTURE(name);
    CHECK(read_link(Yaml::of_text(name)).bandwidth.bytes_per_second == Approx(rate * 0.125e9));
  }
}

TEST_CASE("every model of the catalogue has exactly its published tensors and elements",
          "[scenarios][catalogue]") {
  struct Size {
    std::size_t tensors;
    std::int64_t elements;
  };
  // What named_parameters() of the torch models counts (tied weights once).
  const std::map<std::string, Size> sizes{{"cs336-small", {111, 128'625'408}},
                                          {"cs336-medium", {219, 423'183'360}},
                                          {"cs336-large", {327, 969'411'840}},
                                          {"cs336-xl-2025", {435, 1'998'235'200}},
                                          {"cs336-xl-2026", {291, 3'406'809'600}},
                                          {"resnet18", {62, 11'689'512}},
                                          {"resnet50", {161, 25'557'032}},
                                          {"resnet101", {314, 44'549'160}},
                                          {"vgg16", {32, 138'357'544}},
                                          {"bert-base", {199, 109'482'240}},
                                          {"bert-large", {391, 335'141'888}},
                                          {"gpt2", {148, 124'439'808}},
                                          {"gpt2-xl", {580, 1'557'611'200}},
                                          {"llama2-7b", {291, 6'738'415'616}},
                                          {"llama3-8b", {291, 8'030'261'248}},
                                          {"llama3-70b", {723, 70'553'706'496}},
                                          {"resnext50-32x4d", {161, 25'028'904}},
                                          {"vit-b-16", {152, 86'567'656}},
                                          {"vit-l-16", {296, 304'326'632}},
                                          {"t5-small", {131, 60'506'624}},
                                          {"t5-base", {257, 222'903'552}},
                                          {"t5-large", {509, 737'668'096}},
                                          // The encoder's positions are not trained.
                                          {"whisper-tiny", {166, 37'184'640}},
                                          {"whisper-base", {244, 71'825'920}},
                                          {"whisper-small", {478, 240'582'912}},
                                          {"whisper-medium", {946, 762'321'920}},
                                          {"whisper-large", {1258, 1'541'384'960}},
                                          {"whisper-large-v3", {1258, 1'541'570'560}},
                                          {"dlrm", {38, 166'899'521}},
                                          // Without the backbone's first stages, which are frozen.
                                          {"ssd300", {67, 35'603'106}},
                                          {"maskrcnn-resnet50", {84, 44'178'993}},
                                          {"mixtral-8x7b", {995, 46'702'792'704}},
                                          {"efficientnet-b0", {213, 5'288'548}},
                                          {"efficientnet-b4", {418, 19'341'616}},
                                          {"efficientnet-b7", {711, 66'347'960}}};
  const std::vector<ModelSummary> models = list_models();
  CHECK(models.size() == sizes.size());
  for (const ModelSummary& model : models) {
    CAPTURE(model.name);
    REQUIRE(sizes.count(model.name) == 1);
    CHECK(model.tensors == sizes.at(model.name).tensors);
    CHECK(model.elements == sizes.at(model.name).elements);
    CHECK(model.gradients == Bytes{4 * sizes.at(model.name).elements});  // fp32
    CHECK(!model.source.empty());
  }
}

TEST_CASE("an unknown catalogue name is refused with the nearest and all known ones",
          "[scenarios][catalogue]") {
  const Scratch scratch;
  const std::string model = refusal_at(scratch, 2, "  model: resnet5");
  CHECK_THAT(model,
             Catch::StartsWith("s.yaml:2:10: workload.model: unknown name \"resnet5\"; did you "
                               "mean \"resnet50\"?; known: bert-base, "));
  CHECK_THAT(model, Catch::EndsWith(", whisper-tiny"));
  CHECK_THAT(
      refusal_at(scratch, 6, "  device: h100-sxn"),
      Catch::StartsWith("s.yaml:6:11: cluster.device: unknown name \"h100-sxn\"; did you mean "
                        "\"h100-sxm\"?; known: a10, "));
  CHECK_THAT(
      refusal_at(scratch, 8, "  intra_node: nvlink6"),
      Catch::StartsWith("s.yaml:8:15: cluster.intra_node: unknown name \"nvlink6\"; did you mean "
                        "\"nvlink2\"?; known: efa-100g, ethernet-100g, "));
  CHECK_THAT(
      refusal_at(scratch, 2, "  model: transformer"),
      Catch::StartsWith("s.yaml:2:10: workload.model: unknown name \"transformer\"; known: "));
}

TEST_CASE("a name with a slash or .yaml is a path, from the file that names it",
          "[scenarios][catalogue]") {
  const Scratch scratch;
  scratch.write("mine.yaml", "base: h100-sxm\nmemory: 1 GB\n");
  std::filesystem::create_directory(scratch.path("deeper"));
  scratch.write("deeper/mine.yaml", "base: ../mine.yaml\n");
  scratch.write("deeper/mine.yml", "base: mine.yaml\n");
  for (const char* given : {"mine.yaml", "./mine.yaml", "deeper/mine.yaml", "deeper/mine.yml"}) {
    CAPTURE(given);
    const auto file = scratch.write("s.yaml", spoiled(6, std::string("  device: ") + given));
    const Device device = read_scenario(file).cluster.device;
    CHECK(device.name == "mine");
    CHECK(device.memory == Bytes{1'000'000'000});
    CHECK(device.multiprocessors == 132);  // the H100's
  }
}

TEST_CASE("a path that leads nowhere, or to no plain file, is refused", "[scenarios][catalogue]") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path("folder.yaml"));
  CHECK(refusal_at(scratch, 6, "  device: none.yaml") ==
        "s.yaml:6:11: cluster.device: none.yaml: no such file");
  CHECK(refusal_at(scratch, 6, "  device: folder.yaml") ==
        "s.yaml:6:11: cluster.device: folder.yaml: not a file");
  CHECK(refusal_at(scratch, 2, "  model: a/b/c.yaml") ==
        "s.yaml:2:10: workload.model: a/b/c.yaml: no such file");
  CHECK(refusal_at(scratch, 6, "  device: /dev/zero") ==
        "s.yaml:6:11: cluster.device: /dev/zero: not a file");
}

TEST_CASE("files that are based on each other in a circle are refused", "[scenarios][catalogue]") {
  const Scratch scratch;
  scratch.write("self.yaml", "base: self.yaml\n");
  scratch.write("a.yaml", "base: b.yaml\n");
  scratch.write("b.yaml", "memory: 1 GB\nbase: ./a.yaml\n");
  CHECK(refusal_at(scratch, 6, "  device: self.yaml") ==
        "self.yaml:1:7: base: the files are based on each other in a circle: self.yaml");
  CHECK(refusal_at(scratch, 6, "  device: a.yaml") ==
        "b.yaml:2:7: base: the files are based on each other in a circle: ./a.yaml");
  scratch.write("c.yaml", "base: d.yaml\n");
  scratch.write("d.yaml", "bandwidth: 1 GB/s\nbase: ./c.yaml\n");
  CHECK(refusal_at(scratch, 8, "  intra_node: {base: c.yaml}") ==
        "d.yaml:2:7: base: the files are based on each other in a circle: ./c.yaml");
  CHECK(refusal_at(scratch, 2, "  model: self.yaml") ==
        "self.yaml:1:7: base: the files are based on each other in a circle: self.yaml");
}

TEST_CASE("a base is a name or a path, not a mapping, even one that holds itself",
          "[scenarios][catalogue]") {
  const Scratch scratch;
  CHECK(refusal_at(scratch, 6, "  device: {base: {memory: 1 GB}}") ==
        "s.yaml:6:18: cluster.device.base: expected the name of a catalogue entry or a path");
  // An alias stands where its anchor does: column 11.
  CHECK(refusal_at(scratch, 6, "  device: &d {base: *d}") ==
        "s.yaml:6:11: cluster.device.base: expected the name of a catalogue entry or a path");
}

TEST_CASE("what is wrong in a file referred to is reported there", "[scenarios][catalogue]") {
  const Scratch scratch;
  scratch.write("mine.yaml", "base: h100-sxm\n# a comment\nmemory: 1\n");
  CHECK(refusal_at(scratch, 6, "  device: mine.yaml") ==
        "mine.yaml:3:9: memory: expected a size with its unit, such as \"25 MiB\" or \"10 MB\" and "
        "above "
        "zero, got \"1\"");
  scratch.write("mine.yaml", "- a\n");
  CHECK(refusal_at(scratch, 6, "  device: mine.yaml") ==
        "mine.yaml:1:1: expected a mapping of keys to values, such as \"base: h100-sxm\"");
  scratch.write("mine.yaml", "");
  CHECK(refusal_at(scratch, 6, "  device: mine.yaml") ==
        "mine.yaml:1:1: empty file: expected a mapping such as \"base: h100-sxm\"");
}

}  // namespace
}  // namespace ddpsim
