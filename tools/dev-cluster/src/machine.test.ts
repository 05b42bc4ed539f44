import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";
import { formatCidr } from "./cidr.ts";
import { checkLoopback, isPortFree, readRoutes } from "./machine.ts";

/** A line of /proc/net/route, whose addresses are little-endian. */
const route = (device: string, destination: string, mask: string): string =>
  [device, destination, "00000000", "0001", "0", "0", "0", mask, "0", "0", "0"].join("\t");

test("routes are those of other devices to networks, not the default ones, also where two halves make it", () => {
  const text = [
    "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT",
    route("eth0", "00000000", "00000000"),
    route("tun0", "00000000", "00000080"),
    route("tun0", "00000080", "00000080"),
    route("eth0", "0000000A", "000000FF"),
    route("docker0", "0000A8C0", "0000FFFF"),
    route("cox0", "0000F40A", "0000FFFF"),
    route("eth1", "0107A8C0", "FFFFFFFF"),
  ].join("\n");
  assert.deepEqual(
    readRoutes("cox0", `${text}\n`).map(({ cidr, device }) => `${formatCidr(cidr)} ${device}`),
    ["10.0.0.0/8 eth0", "192.168.0.0/16 docker0", "192.168.7.1/32 eth1"],
  );
  assert.deepEqual(readRoutes("cox0", text.split("\n", 1)[0]), []);
});

for (const host of ["127.0.0.1", "0.0.0.0", "::"])
  test(`a port on which a program listens at ${host} is taken, and free when it has ended`, async (t) => {
    const server = createServer();
    t.after(() => server.close());
    server.listen({ host, port: 0, ipv6Only: true });
    await once(server, "listening");
    const { port } = server.address() as AddressInfo; // cast: it listens on a port
    assert.equal(await isPortFree(port), false);
    server.close();
    await once(server, "close");
    assert.equal(await isPortFree(port), true);
    assert.equal(await isPortFree(port), true, "a look does not take it");
  });

test("this machine's loopback interface is up", () => assert.doesNotThrow(checkLoopback));
