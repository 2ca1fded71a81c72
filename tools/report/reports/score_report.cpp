#include "tools/report/reports/score_report.hpp"

#include <fmt/format.h>

#include "tools/report/records/score_fields.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {
namespace {

Record row_record(const ScoreRow& row) {
  Record record;
  record.add(fields::file, row.file)
      .add(fields::strategy, name_of(row.strategy))
      .add(fields::bucket_cap_bytes,
           row.bucket_cap.count > 0 ? FieldValue(row.bucket_cap.count) : FieldValue())
      .add(fields::measured_ms, in_ms(row.measured))
      .add(fields::predicted_ms, in_ms(row.predicted))
      .add(fields::score_error, row.error())
      .add(fields::calibration, row.calibration)
      .add(fields::row_label, row.label);
  if (row.exposed_error >= 0) record.add(fields::exposed_error, row.exposed_error);
  record.add(fields::ranks, row.ranks)
      .add(fields::device_name, row.device)
      .add(fields::score_link, row.link.empty() ? FieldValue() : FieldValue(row.link))
      .add(fields::score_compute, row.compute ? FieldValue(name_of(*row.compute)) : FieldValue());
  return record;
}

Record summary_record(const ScoreSummary& summary) {
  const auto of_predicted = [&](double figure) {
    return summary.predicted_rows > 0 ? FieldValue(figure) : FieldValue();
  };
  Record record;
  record.add(fields::predicted_rows, summary.predicted_rows)
      .add(fields::median_error, of_predicted(summary.median_error))
      .add(fields::ninth_decile_error, of_predicted(summary.ninth_decile_error))
      .add(fields::worst_error, of_predicted(summary.worst_error))
      .add(fields::bias, of_predicted(summary.bias))
      .add(fields::median_exposed_error,
           summary.median_exposed_error ? FieldValue(*summary.median_exposed_error) : FieldValue());
  return record;
}

Record group_record(const ScoreGroup& group) {
  Record record = summary_record(group.summary);
  record.add(fields::group_of, group.of);
  return record;
}

/// All predicted rows, then those of each number of ranks and kind of link.
Table group_table(const std::vector<FileScore>& files, const ScoreSummary& summary) {
  Table table{{fields::group_of, fields::predicted_rows, fields::median_error,
               fields::ninth_decile_error, fields::worst_error, fields::bias,
               fields::median_exposed_error}};
  table.add(group_record({"all", summary}));
  for (const ScoreGroup& group : group(files)) table.add(group_record(group));
  return table;
}

}  // namespace

Table rows_table(const FileScore& score) {
  Table table{{fields::row_label, fields::measured_ms, fields::predicted_ms, fields::score_error,
               fields::exposed_error, fields::calibration_in_words}};
  table.title = fmt::format("{}\n  {}", score.file, describe(score.fit));
  for (const std::string& note : score.fit.notes) table.title += "\n  note: " + note;
  for (const ScoreRow& row : score.rows)
    table.add(row_record(row).add(fields::calibration_in_words,
                                  row.calibration ? FieldValue("calibration") : FieldValue()));
  return table;
}

Page score_page(const std::vector<FileScore>& files, const ScoreSummary& summary) {
  Page page;
  for (const FileScore& file : files) page.add(rows_table(file));
  page.add(group_table(files, summary));
  if (summary.predicted_rows == 0) {
    page.add(Paragraph{"no row is predicted: something is fitted to each"});
    return page;
  }
  page.add(Paragraph{fmt::format(
      "{} predicted rows in {} files: median error {:.1f} %, nine in ten within {:.1f} %, worst "
      "{:.1f} %{}",
      summary.predicted_rows, files.size(), 100 * summary.median_error,
      100 * summary.ninth_decile_error, 100 * summary.worst_error,
      summary.median_exposed_error
          ? fmt::format("; median exposed error {:.1f} %", 100 * *summary.median_exposed_error)
          : "")});
  return page;
}

Record score_record(const std::vector<FileScore>& files, const std::vector<std::string>& left_out,
                    const ScoreSummary& summary) {
  List rows;
  for (const FileScore& file : files)
    for (const ScoreRow& row : file.rows) rows.emplace_back(row_record(row));
  List groups;
  for (const ScoreGroup& each : group(files)) groups.emplace_back(group_record(each));
  Record record = summary_record(summary);
  record.add(fields::format, "ddpsim.score/1")
      .add(fields::rows, std::move(rows))
      .add(fields::left_out, List(left_out.begin(), left_out.end()))
      .add(fields::score_groups, std::move(groups));
  return record;
}

Table score_table(const std::vector<FileScore>& files) {
  Table table{{fields::file, fields::strategy, fields::bucket_cap_bytes, fields::measured_ms,
               fields::predicted_ms, fields::score_error, fields::calibration}};
  for (const FileScore& file : files)
    for (const ScoreRow& row : file.rows) table.add(row_record(row));
  return table;
}

}  // namespace ddpsim
