import assert from "node:assert/strict";
import { test } from "node:test";
import { FlagError, parseFlags } from "@coxswain/apimachinery/flags/flags";
import { coxswainServices } from "./flags.ts";

const parse = (...argv: string[]) => parseFlags(coxswainServices.flags, argv).values;

test("limits are included: no timeout is 0, the shortest period is more than that", () => {
  const { "conntrack-tcp-timeout-established": established, "ingress-max-body-bytes": bytes } = parse(
    "--conntrack-tcp-timeout-established=0s",
    "--ingress-max-body-bytes=0",
  );
  assert.deepEqual([established, bytes], [0, 0]);
  assert.equal(parse("--iptables-sync-period=1ms")["iptables-sync-period"], 1);
  assert.equal(parse("--ingress-connections-per-client=1")["ingress-connections-per-client"], 1);
});

for (const flag of [
  "--iptables-sync-period=0s",
  "--iptables-sync-period=-1s",
  "--conntrack-tcp-timeout-established=-1ms",
  "--conntrack-tcp-timeout-close-wait=-1s",
  "--ingress-connections-per-client=0",
  "--ingress-idle-timeout=0s",
  "--ingress-response-timeout=0s",
  "--ingress-max-body-bytes=-1",
])
  test(`${flag} is refused`, () => {
    assert.throws(() => parse(flag), FlagError);
  });
