import assert from "node:assert/strict";
import { test } from "node:test";
import { flags, parseFlags, section } from "./flags.ts";
import { metricsFlags, metricsOptions } from "./metrics.ts";

const table = flags(section("Metrics", metricsFlags));
const optionsOf = (...argv: string[]) => metricsOptions(parseFlags(table, argv).values);

for (const { argv, want } of [
  { argv: [], want: { disabled: [], showHidden: false, allowLabels: {} } },
  { argv: ["--show-hidden-metrics-for-version=1.22"], want: { showHidden: true } },
  {
    argv: ["--allow-metric-labels=requests_total,verb=GET,LIST", "--allow-metric-labels=other,code=200"],
    want: { allowLabels: { "requests_total,verb": ["GET", "LIST"], "other,code": ["200"] } },
  },
  {
    argv: ['--allow-metric-labels="requests_total,verb=GET,LIST","other,code=200"'],
    want: { allowLabels: { "requests_total,verb": ["GET", "LIST"], "other,code": ["200"] } },
  },
]) {
  test(`metrics with ${argv.join(" ") || "no flags"}`, () => assert.partialDeepStrictEqual(optionsOf(...argv), want));
}

for (const { argv, message } of [
  {
    argv: "--show-hidden-metrics-for-version=1.23",
    message:
      "--show-hidden-metrics-for-version must be omitted or have the value '1.22'. Only the previous minor version is allowed",
  },
  {
    argv: "--show-hidden-metrics-for-version=1.22.0",
    message:
      "--show-hidden-metrics-for-version must be omitted or have the value '1.22'. Only the previous minor version is allowed",
  },
  {
    argv: "--allow-metric-labels=requests_total=GET",
    message: "--allow-metric-labels must have a list of kv pair with format `metricName,labelName=labelValue, labelValue,...`",
  },
  {
    argv: "--allow-metric-labels=GET",
    message: 'invalid argument "GET" for "--allow-metric-labels" flag: GET must be formatted as key=value',
  },
]) {
  test(`${argv} is refused`, () => assert.throws(() => optionsOf(argv), { message }));
}
