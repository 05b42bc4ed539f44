import assert from "node:assert/strict";
import { test } from "node:test";
import { ProgramError } from "../host/run-program.ts";
import { type AddressHost, announce, neighbourOn, prepareLink, releaseAddresses, unbindAddress } from "./local-addresses.ts";
import { Pool } from "./pool.ts";

const link = { name: "eth0", mtu: 1500, address: "", isUp: true, addresses: [{ ip: "192.0.2.1", bits: 24 }] };

/** A machine whose interfaces have these addresses, `ip/bits` by interface. @param refuses begins the commands that fail */
function aMachine(addresses: Record<string, readonly string[]>, refuses = "none") {
  const calls: string[] = [];
  const host: AddressHost = {
    async run(program, args) {
      const text = [program, ...args].join(" ");
      if (text === "ip -j -d address show")
        return JSON.stringify(
          Object.entries(addresses).map(([ifname, all]) => ({
            ifname,
            addr_info: all.map((one) => ({ local: one.split("/")[0], prefixlen: Number(one.split("/")[1]) })),
          })),
        );
      calls.push(text);
      if (text.startsWith(refuses)) throw new ProgramError("RTNETLINK answers: Cannot assign requested address", 2);
      return "";
    },
    send: async (from, to) => void calls.push(`send ${from} ${to}`),
    set: (file, value) => void calls.push(`set ${file} ${value}`),
  };
  return { host, calls };
}

test("of the pool's addresses those go that this program added and that are not to be kept, on every interface", async () => {
  const { host, calls } = aMachine({
    eth0: ["192.0.2.5/24", "192.0.2.6/32", "192.0.2.7/32", "198.51.100.1/32", "fd00::6/128"],
    eth1: ["192.0.2.8/32"],
  });
  await releaseAddresses(new Pool(["192.0.2.0/24", "fd00::/120"]), host.run, new Set(["192.0.2.7"]));
  assert.deepEqual(
    calls,
    ["192.0.2.6/32 dev eth0", "fd00::6/128 dev eth0", "192.0.2.8/32 dev eth1"].map((text) => `ip address delete ${text}`),
  );
  calls.length = 0;
  await releaseAddresses(new Pool([]), host.run);
  assert.deepEqual(calls, []);
});

test("an address that cannot be removed is an error while the kernel has it, and none when it has expired", async () => {
  const refusing = "ip address delete";
  const present = aMachine({ eth0: ["192.0.2.6/32"] }, refusing);
  await assert.rejects(unbindAddress(present.host.run, "192.0.2.6", "eth0"), /Cannot assign/);
  const expired = aMachine({ eth0: ["192.0.2.6/24", "192.0.2.7/32"] }, refusing);
  await unbindAddress(expired.host.run, "192.0.2.6", "eth0");
});

test("an IPv4 address is announced by a request for a neighbour that the kernel does not know any more", async () => {
  const { host, calls } = aMachine({});
  await announce(host, "192.0.2.50", link);
  assert.deepEqual(calls.splice(0), ["ip neighbour delete 192.0.2.254 dev eth0", "send 192.0.2.50 192.0.2.254"]);
  const unknown = aMachine({}, "ip neighbour");
  await announce(unknown.host, "192.0.2.50", link);
  assert.equal(unknown.calls.at(-1), "send 192.0.2.50 192.0.2.254", "one that was not known");
  await announce(host, "fd00::50", link);
  await announce(host, "192.0.2.50", { ...link, addresses: [{ ip: "192.0.2.1", bits: 31 }] });
  assert.deepEqual(calls, []);
});

test("the kernel announces an IPv6 address itself, where that is turned on", async () => {
  const { host, calls } = aMachine({});
  await prepareLink(host, "fd00::50", link);
  await prepareLink(host, "192.0.2.50", link);
  assert.deepEqual(calls, ["set /proc/sys/net/ipv6/conf/eth0/ndisc_notify 1"]);
});

test("a neighbour is looked for in the first network that has one", () => {
  const addresses = [
    { ip: "fd00::1", bits: 64 },
    { ip: "203.0.113.1", bits: 31 },
    { ip: "192.0.2.1", bits: 30 },
  ];
  assert.equal(neighbourOn({ ...link, addresses }), "192.0.2.2");
});
