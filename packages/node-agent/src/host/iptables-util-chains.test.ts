import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { newFakeClock } from "@coxswain/apimachinery/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/logging/logger";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { keepUtilChains, type RunCommand, utilRules } from "./iptables-util-chains.ts";

const execute = promisify(execFile);

test("the marks are the bits that were asked for, and IPv6 has no rule for localnet", () => {
  const marks = (ipv6: boolean): string => JSON.stringify(utilRules({ masqueradeBit: 3, dropBit: 31, ipv6 }));
  assert.match(marks(false), /--or-mark","0x00000008"/);
  assert.match(marks(false), /"--mark","0x80000000\/0x80000000"/);
  assert.match(marks(false), /127\.0\.0\.0\/8/);
  assert.doesNotMatch(marks(true), /127\.0\.0\.0\/8/);
});

/** A network namespace of the test's own; undefined where it cannot be made. */
async function newNamespace(): Promise<string | undefined> {
  const name = `cox-chains-${process.pid}`;
  try {
    await execute("ip", ["netns", "add", name]);
    await execute("ip", ["netns", "exec", name, "iptables", "-w", "-t", "nat", "-L"]);
    return name;
  } catch {
    return undefined;
  }
}

const namespace = await newNamespace();
if (namespace !== undefined) {
  test("the utility chains are made, once, and made again when somebody flushed them", async (t) => {
    t.after(() => execute("ip", ["netns", "del", namespace]));
    const clock = newFakeClock();
    const inside = (...command: string[]) => execute("ip", ["netns", "exec", namespace, ...command]);
    const run: RunCommand = async (program, args) => void (await inside(program, ...args));
    const rules = async (table: string): Promise<string[]> =>
      (await inside("iptables-save", "-t", table)).stdout
        .split("\n")
        .filter((line) => /KUBE|localnet/.test(line) && line[0] === "-");
    const stop = new AbortController();
    const options = { masqueradeBit: 14, dropBit: 15, clock, log: discardLogger, run };
    const running = keepUtilChains(options, stop.signal);
    await waitFor(() => clock.waiting > 0, { what: "the chains" });
    const nat = [
      '-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING',
      "-A KUBE-MARK-DROP -j MARK --set-xmark 0x8000/0x8000",
      "-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000",
      "-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN",
      "-A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0",
      '-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully',
    ];
    const filter = [
      "-A INPUT -j KUBE-FIREWALL",
      "-A OUTPUT -j KUBE-FIREWALL",
      '-A KUBE-FIREWALL -m comment --comment "kubernetes firewall for dropping marked packets" -m mark --mark 0x8000/0x8000 -j DROP',
      '-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP',
    ];
    assert.deepEqual((await rules("nat")).sort(), nat.sort());
    assert.deepEqual((await rules("filter")).sort(), filter.sort());
    const again = new AbortController();
    const second = keepUtilChains({ ...options, clock: newFakeClock() }, again.signal);
    again.abort();
    await second;
    assert.equal((await rules("nat")).length, nat.length, "what is there is not added again");

    for (const option of ["-F", "-X"]) await inside("iptables", "-t", "nat", option);
    assert.deepEqual(await rules("nat"), []);
    await clock.advance(60_000);
    await waitFor(() => clock.waiting > 0, { what: "the next look" });
    assert.deepEqual((await rules("nat")).sort(), nat.sort());
    stop.abort();
    await running;
  });
}
