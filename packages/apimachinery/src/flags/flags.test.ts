import assert from "node:assert/strict";
import { test } from "node:test";
import { newFeatureGates } from "./feature-gates.ts";
import { FlagError, flags, type Program, parseFlags, section } from "./flags.ts";
import { helpText } from "./help.ts";
import {
  bool,
  duration,
  float,
  int,
  ip,
  level,
  mapStringBool,
  mapStringString,
  multiMap,
  namedCertKeys,
  portRange,
  string,
  stringSlice,
} from "./types.ts";

const program = {
  name: "kube-tester",
  description: "Tests.",
  flags: flags(
    section("Generic", {
      "etcd-servers": stringSlice({ help: "Servers." }),
      "request-timeout": duration({
        default: "1m0s",
        help: "Time limit.",
        check: (ms) => (ms > 0 ? undefined : "must be positive"),
      }),
      "leader-elect": bool({ default: true, help: "Elects." }),
      port: int({ default: 80, help: "Port." }),
      name: string({ default: "web", help: "Name.", deprecated: "use --names." }),
      labels: mapStringString({ help: "Labels." }),
      range: portRange({ default: "30000-32767", help: "Range." }),
      secret: string({ help: "Not shown.", hidden: true }),
    }),
    section("Logs", { v: level({ shorthand: "v", help: "Verbosity." }), "feature-gates": mapStringBool({ help: "Gates." }) }),
  ),
} satisfies Program;

const parse = (...argv: string[]) => parseFlags(program.flags, argv);

for (const { name, argv, want } of [
  { name: "a value after = or after a blank", argv: ["--port=1", "--name", "x"], want: { port: 1, name: "x" } },
  { name: "a number in another base", argv: ["--port=0x50"], want: { port: 80 } },
  { name: "a value that looks like a flag", argv: ["--name", "--port"], want: { name: "--port" } },
  { name: "an underscore is a dash", argv: ["--request_timeout=5s"], want: { "request-timeout": 5_000 } },
  {
    name: "a bool alone, and one that is turned off",
    argv: ["--leader-elect", "--leader-elect=false"],
    want: { "leader-elect": false },
  },
  { name: "slices add up", argv: ["--etcd-servers=a,b", "--etcd-servers=c"], want: { "etcd-servers": ["a", "b", "c"] } },
  {
    name: "maps add up, prototype names are data",
    argv: ["--labels=a=1,constructor=2", "--labels=b=3"],
    want: { labels: { a: "1", constructor: "2", b: "3" } },
  },
  { name: "shorthand with a blank", argv: ["-v", "4"], want: { v: 4 } },
  { name: "shorthand with =", argv: ["-v=5"], want: { v: 5 } },
  {
    name: "several underscores are dashes",
    argv: ["--etcd_servers", "a", "--request_timeout", "1s"],
    want: { "etcd-servers": ["a"], "request-timeout": 1_000 },
  },
  { name: "an empty value", argv: ["--name="], want: { name: "" } },
  { name: "a value with = and line breaks", argv: ["--name=a=b\nc"], want: { name: "a=b\nc" } },
  {
    name: "empty pairs are left out",
    argv: ["--labels=a=1,,b=2,", "--feature-gates=A=true,"],
    want: { labels: { a: "1", b: "2" }, "feature-gates": { A: true } },
  },
  { name: "shorthand without anything between", argv: ["-v6"], want: { v: 6 } },
  { name: "defaults", argv: [], want: { "request-timeout": 60_000, range: { first: 30_000, last: 32_767 } } },
]) {
  test(name, () => assert.partialDeepStrictEqual(parse(...argv).values, want));
}

for (const { argv, message } of [
  { argv: ["--nope"], message: "unknown flag: --nope" },
  { argv: ["--nope=1"], message: "unknown flag: --nope" },
  { argv: ["--constructor=1"], message: "unknown flag: --constructor" },
  { argv: ["---port=1"], message: "bad flag syntax: ---port=1" },
  { argv: ["--=1"], message: "bad flag syntax: --=1" },
  { argv: ["-4"], message: "unknown shorthand flag: '4' in -4" },
  { argv: ["-x"], message: "unknown shorthand flag: 'x' in -x" },
  { argv: ["--port"], message: "flag needs an argument: --port" },
  {
    argv: ["--port=many"],
    message: 'invalid argument "many" for "--port" flag: strconv.ParseInt: parsing "many": invalid syntax',
  },
  { argv: ["--request-timeout=0s"], message: 'invalid argument "0s" for "--request-timeout" flag: must be positive' },
  {
    argv: ["--leader-elect=maybe"],
    message: 'invalid argument "maybe" for "--leader-elect" flag: strconv.ParseBool: parsing "maybe": invalid syntax',
  },
  { argv: ["--feature-gates=A"], message: 'invalid argument "A" for "--feature-gates" flag: missing bool value for A' },
  { argv: ["serve"], message: 'unknown command "serve"' },
  { argv: ["--", "--port=1"], message: 'unknown command "--port=1"' },
  { argv: ["-v"], message: "flag needs an argument: 'v' in -v" },
  { argv: ["-v=x"], message: 'invalid argument "x" for "-v, --v" flag: strconv.ParseInt: parsing "x": invalid syntax' },
  { argv: ["--leader-elect", "false"], message: 'unknown command "false"' },
]) {
  test(`refuses ${argv.join(" ")}`, () =>
    assert.throws(
      () => parse(...argv),
      (err) => err instanceof FlagError && err.message === message,
    ));
}

test("help shows sections, types, defaults and deprecations, and hides what is hidden", () => {
  const help = helpText(program);
  assert.match(help, /^Tests\.\n\nUsage:\n {2}kube-tester \[flags\]\n\nGeneric flags:\n\n/);
  assert.match(help, / {6}--etcd-servers strings {6,}Servers\.\n/);
  assert.match(help, /--leader-elect {3,}Elects\. \(default true\)/);
  assert.match(help, /--name string {3,}Name\. \(default "web"\) \(DEPRECATED: use --names\.\)/);
  assert.match(help, /--request-timeout duration {3,}Time limit\. \(default 1m0s\)/);
  assert.match(help, / {2}-v, --v Level {3,}Verbosity\./);
  assert.match(help, /\n\s+APIListChunking=true\|false \(BETA - default=true\)\n/);
  assert.doesNotMatch(help, /secret|AdvancedAuditing/);
});

test("help and version are known to every program, and what else is on the command line does not matter to help", () => {
  const given = (...argv: string[]) => {
    const { help, version, set } = parse(...argv);
    return [help, version, [...set]];
  };
  assert.deepEqual(given(), [false, undefined, []]);
  assert.deepEqual(given("--help", "serve", "--port", "2"), [true, undefined, ["port"]]);
  assert.deepEqual(given("-h"), [true, undefined, []]);
  assert.deepEqual(given("--help=false"), [false, undefined, []]);
  assert.deepEqual(given("--version"), [false, "true", []]);
  assert.deepEqual(given("--version=raw", "--name=x"), [false, "raw", ["name"]]);
});

test("--help is written as upstream's: sections of aligned flags in alphabetical order, then the global ones", () => {
  const own = {
    period: duration({ help: "Zero." }),
    b: int({ help: "One.", default: 1, shorthand: "b" }),
    long: string({ help: "Quoted.", default: "x" }),
    list: stringSlice({ help: "List.", default: ["x", "y"] }),
    address: ip({ help: "None." }),
    old: bool({ help: "Old.", deprecated: "gone." }),
    path: string({ help: "Path.", defaultText: "beside it" }),
  };
  const rows = (width: number, ...lines: [string, string][]) => lines.map(([left, right]) => left.padEnd(width) + right);
  const lines: [string, string][] = [
    ["      --address ip", "None."],
    ["  -b, --b int", "One. (default 1)"],
    ["      --list strings", "List. (default [x,y])"],
    ["      --long string", 'Quoted. (default "x")'],
    ["      --old", "Old. (DEPRECATED: gone.)"],
    ["      --path string", 'Path. (default "beside it")'],
    ["      --period duration", "Zero."],
  ];
  const global: [string, string][] = [
    ["  -h, --help", "help for small"],
    ["      --version version[=true]", "Print version information and quit"],
  ];
  const small = { name: "small", description: "Small.", flags: flags(section("Own", own)) } satisfies Program;
  assert.equal(
    helpText(small),
    [
      "Small.",
      "",
      "Usage:",
      "  small [flags]",
      "",
      "Own flags:",
      "",
      ...rows(26, ...lines),
      "",
      "Global flags:",
      "",
      ...rows(33, ...global),
      "",
    ].join("\n"),
  );
  const all = [...lines, ...global].sort(([a], [b]) => (a.slice(6) < b.slice(6) ? -1 : 1));
  assert.equal(
    helpText({ ...small, unsectioned: true }),
    ["Small.", "", "Usage:", "  small [flags]", "", "Flags:", ...rows(33, ...all), ""].join("\n"),
  );
});

test("a line of help is as long as the terminal is wide, where at least 24 columns are left for the text", () => {
  const words = `${"x".repeat(11)} ${"y".repeat(12)}`;
  const wide = { ...program, flags: flags(section("Own", { x: string({ help: `${words} ${words}` }) })) };
  const shown = (columns: number) =>
    helpText(wide, columns)
      .split("\n")
      .filter((line) => line.includes("xxx") || line.includes("yyy"))
      .map((line) => line.replace("--x string", "").trim());
  const indent = "      --x string   ".length;
  assert.deepEqual(shown(indent + 24), [words, words]);
  assert.deepEqual(shown(indent + 23), [`${words} ${words}`]);
});

test("a flag is declared once", () => {
  assert.throws(
    () => flags(section("A", { x: bool({ help: "" }) }), section("B", { x: bool({ help: "" }) })),
    /--x is declared twice/,
  );
});

test("feature gates: groups set gates that are not named; locked and unknown gates are refused", () => {
  const gates = newFeatureGates("kube-apiserver", { AllAlpha: true, ProcMountType: false });
  assert.equal(gates.enabled("GRPCContainerProbe"), true);
  assert.equal(gates.enabled("ProcMountType"), false);
  assert.equal(gates.enabled("APIListChunking"), true);
  assert.equal(newFeatureGates("kube-apiserver", { AllBeta: false }).enabled("APIListChunking"), false);
  assert.throws(() => newFeatureGates("kube-apiserver", { Nothing: true }), /^Error: unrecognized feature gate: Nothing$/);
  assert.throws(
    () => newFeatureGates("kube-apiserver", { ConfigurableFSGroupPolicy: false }),
    /cannot set feature gate ConfigurableFSGroupPolicy to false, feature is locked to true/,
  );
  assert.equal(
    newFeatureGates("kube-apiserver", { ConfigurableFSGroupPolicy: true }).enabled("ConfigurableFSGroupPolicy"),
    true,
    "a locked gate may be set to what it is",
  );
  assert.match(
    newFeatureGates("kube-apiserver", { AdvancedAuditing: true }).warnings[0] ?? "",
    /^Setting GA feature gate AdvancedAuditing=true/,
  );
  assert.equal(newFeatureGates("kubelet", {}).enabled("CSIMigrationAWS"), false);
  assert.throws(() => newFeatureGates("kubelet", {}).enabled("ServerSideFieldValidation"));
});

for (const { name, read, want } of [
  { name: "a range by its ends", read: () => portRange({ help: "" }).parse("80-90", undefined), want: { first: 80, last: 90 } },
  {
    name: "a range by its length",
    read: () => portRange({ help: "" }).parse(" 80 + 10 ", undefined),
    want: { first: 80, last: 90 },
  },
  { name: "one port", read: () => portRange({ help: "" }).parse("65535", undefined), want: { first: 65_535, last: 65_535 } },
  { name: "quoted values", read: () => stringSlice({ help: "" }).parse('a,"b,""c""",', ["x"]), want: ["x", "a", 'b,"c"', ""] },
  { name: "an empty list", read: () => stringSlice({ help: "" }).parse("", ["x"]), want: ["x"] },
  {
    name: "headers of several occurrences",
    read: () => multiMap({ help: "" }).parse("a: 1,b:2:3", [["a", "0"]]),
    want: [
      ["a", "0"],
      ["a", "1"],
      ["b", "2:3"],
    ],
  },
  { name: "an address with blanks", read: () => ip({ help: "" }).parse(" fd00::1 ", undefined), want: "fd00::1" },
  { name: "a file with commas in its name", read: () => namedCertKeys({ help: "" }).parse("a,b:c", ["x"]), want: ["x", "a,b:c"] },
  { name: "a number with an exponent", read: () => float({ help: "" }).parse("-.5e1", undefined), want: -5 },
])
  test(`a flag reads ${name}`, () => assert.deepEqual(read(), want));

for (const { name, read, message } of [
  {
    name: "a range that ends before it starts",
    read: () => portRange({ help: "" }).parse("90-80", undefined),
    message: "end port cannot be less than start port: 90-80",
  },
  {
    name: "a port beyond the last",
    read: () => portRange({ help: "" }).parse("65535+1", undefined),
    message: "the port range cannot be greater than 65535: 65535+1",
  },
  {
    name: "a header without colon",
    read: () => multiMap({ help: "" }).parse("a", undefined),
    message: "malformed pair, expect string:string",
  },
  {
    name: "a number that is none",
    read: () => float({ help: "" }).parse("1e", undefined),
    message: 'strconv.ParseFloat: parsing "1e": invalid syntax',
  },
])
  test(`a flag refuses ${name}`, () => assert.throws(read, { message }));

test("help is wrapped to the width of the terminal, and not at all in a narrow one", () => {
  const words = Array.from({ length: 40 }, () => "word").join(" ");
  const long = { ...program, flags: flags(section("Generic", { x: string({ help: words }) })) };
  for (const columns of [60, 100]) {
    const lines = helpText(long, columns)
      .split("\n")
      .filter((line) => line.includes("word"));
    assert.ok(lines.length > 1 && lines.every((line) => line.length <= columns), `${columns}`);
    assert.equal(new Set(lines.slice(1).map((line) => line.search(/\S/))).size, 1, "indented alike");
  }
  for (const columns of [0, 30])
    assert.equal(
      helpText(long, columns)
        .split("\n")
        .filter((line) => line.includes("word")).length,
      1,
    );
});

test("a deprecated gate is warned about, and a gate that is named wins over its group in any order", () => {
  const { warnings } = newFeatureGates("kube-apiserver", { DynamicKubeletConfig: true });
  assert.deepEqual(warnings, [
    "Setting deprecated feature gate DynamicKubeletConfig=true. It will be removed in a future release.",
  ]);
  for (const wanted of [
    { ProcMountType: false, AllAlpha: true },
    { AllAlpha: true, ProcMountType: false },
  ])
    assert.equal(newFeatureGates("kube-apiserver", wanted).enabled("ProcMountType"), false);
});
