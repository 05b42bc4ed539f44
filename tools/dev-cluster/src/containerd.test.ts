import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { cniFolder, containerdProcess, hasCapability, writeContainerdConfig } from "./containerd.ts";
import { defaultChoices, newSettings, type Settings } from "./settings.ts";

for (const [effective, want] of [
  ["0000000001000000", true],
  ["000001ffffffffff", true],
  ["000001fffeffffff", false],
  ["0000000000800000", false],
  ["0000000002000000", false],
] as const)
  test(`the capability 24 is ${want ? "" : "not "}in ${effective}`, () => {
    const status = `Name:\tnode\nCapPrm:\t000001fffeffffff\nCapEff:\t${effective}\nCapBnd:\t000001ffffffffff\n`;
    assert.equal(hasCapability(status, 24), want);
  });

test("a process without a line about capabilities has none", () => assert.equal(hasCapability("Name:\tnode\n", 24), false));

test("containerd's files are in the cluster's folders, and its network is the one of the chosen parts alone", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-containerd-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const choices = { ...defaultChoices(), podCidr: "10.50.0.0/20" };
  const settings: Settings = { ...newSettings("/clone", "b", join(folder, "state"), choices, {}, 0), run: join(folder, "run") };
  const withoutNetwork = { ...settings, extraArgs: { ...settings.extraArgs, "coxswain-services": ["--disable=pod-network"] } };
  const files = () => readdirSync(cniFolder(settings));

  writeContainerdConfig(settings);
  const own = files();
  assert.equal(own.length, 1);
  assert.notDeepEqual(own, ["10-cox.conflist"]);
  assert.equal(statSync(settings.run).mode & 0o777, 0o711);
  const network = JSON.parse(readFileSync(join(cniFolder(settings), own[0]!), "utf8"));
  assert.equal(network.name, `cox-${settings.id}`);
  assert.match(JSON.stringify(network), /"10\.50\.0\.0\/20"/);

  writeContainerdConfig(withoutNetwork);
  assert.deepEqual(files(), ["10-cox.conflist"]);
  assert.deepEqual(JSON.parse(readFileSync(join(cniFolder(settings), "10-cox.conflist"), "utf8")), {
    cniVersion: "0.4.0",
    name: `cox-${settings.id}`,
    plugins: [
      {
        ...{ type: "bridge", bridge: settings.bridge, isGateway: true, ipMasq: true, hairpinMode: true },
        ipam: {
          type: "host-local",
          dataDir: join(settings.state, "containerd", "ipam"),
          ranges: [[{ subnet: "10.50.0.0/20", gateway: "10.50.0.1" }]],
          routes: [{ dst: "0.0.0.0/0" }],
        },
      },
      { type: "portmap", capabilities: { portMappings: true }, snat: true },
    ],
  });
  writeContainerdConfig(settings);
  assert.deepEqual(files(), own);

  const config = readFileSync(join(settings.state, "containerd", "config.toml"), "utf8");
  const canAdjust = hasCapability(readFileSync("/proc/self/status", "utf8"), 24);
  for (const line of [
    `root = "${settings.state}/containerd/root"`,
    `state = "${settings.run}/containerd"`,
    `  address = "${settings.run}/containerd.sock"`,
    `  path = "${settings.state}/containerd/opt"`,
    "  netns_mounts_under_state_dir = true",
    `  restrict_oom_score_adj = ${!canAdjust}`,
    '  stream_server_address = "127.0.0.1"',
    '    bin_dir = "/usr/lib/cni"',
    `    conf_dir = "${cniFolder(settings)}"`,
  ])
    assert.ok(config.split("\n").includes(line), line);
});

test("containerd gets this configuration, or the user's own", (t) => {
  const bin = mkdtempSync(join(tmpdir(), "cox-bin-"));
  writeFileSync(join(bin, "containerd"), "", { mode: 0o755 });
  const path = process.env["PATH"];
  process.env["PATH"] = `${bin}:${path}`;
  t.after(() => {
    process.env["PATH"] = path;
    rmSync(bin, { recursive: true, force: true });
  });
  const settings = newSettings("/clone", "b", "/s", defaultChoices(), {}, 0);
  assert.equal(containerdProcess(settings).command, join(bin, "containerd"));
  assert.deepEqual(containerdProcess(settings).args, ["--config=/s/containerd/config.toml"]);
  const extraArgs = { ...settings.extraArgs, containerd: ["--config=/mine", "--log-level=debug"] };
  assert.deepEqual(containerdProcess({ ...settings, extraArgs }).args, ["--config=/mine", "--log-level=debug"]);
});
