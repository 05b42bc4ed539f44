import assert from "node:assert/strict";
import { test } from "node:test";
import { unitFlags, unitWithFlags } from "../host/units.ts";
import { carriedOver } from "./carry-over.ts";

const unit = (version: string, flags: string): string =>
  `[Service]\n# ${version}\nExecStart=/usr/bin/kubelet \\\n  ${flags.split(" ").join(" \\\n  ")} \\\n  $KUBELET_ARGS\nRestart=always\n`;

test("an upgraded unit has the new archive's lines and flags, and this machine's own", () => {
  const from = unit("1", "--a=1 --b=1 --gone=1");
  const to = unit("2", "--a=2 --b=2 --new=2");
  const installed = unitWithFlags(from, { b: "mine", c: 'mine "too" 5% $HOME \\' });
  const now = carriedOver(installed, from, to);
  assert.deepEqual(unitFlags(now), { a: "2", b: "mine", c: 'mine "too" 5% $HOME \\', new: "2" });
  assert.match(now, /^# 2$/m);
  assert.match(now, /\$KUBELET_ARGS\nRestart=always\n/);
  // The downgrade restores the unit.
  assert.equal(carriedOver(now, to, from), installed);
  assert.equal(carriedOver(installed, from, from), installed);
});
