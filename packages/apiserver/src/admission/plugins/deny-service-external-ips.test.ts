import assert from "node:assert/strict";
import { test } from "node:test";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { AdmissionAttributes } from "../plugin.ts";
import { denyServiceExternalIps } from "./deny-service-external-ips.ts";

const services = { group: "", version: "v1", resource: "services" };
const having = (...externalIPs: string[]) => ({ metadata: {}, spec: { externalIPs } });

for (const { name, before, after, more = {}, isRefused } of [
  { name: "a new service with one", after: having("1.1.1.1"), isRefused: true },
  { name: "a new service without any", after: { metadata: {}, spec: {} }, isRefused: false },
  { name: "a second one", before: having("1.1.1.1"), after: having("1.1.1.1", "2.2.2.2"), isRefused: true },
  { name: "another one in its place", before: having("1.1.1.1"), after: having("2.2.2.2"), isRefused: true },
  {
    name: "those that were there, in another order",
    before: having("1.1.1.1", "2.2.2.2"),
    after: having("2.2.2.2", "1.1.1.1"),
    isRefused: false,
  },
  { name: "one less", before: having("1.1.1.1", "2.2.2.2"), after: having("2.2.2.2"), isRefused: false },
  { name: "one in the status", after: having("1.1.1.1"), more: { subresource: "status" }, isRefused: false },
  {
    name: "one of a service of another group",
    after: having("1.1.1.1"),
    more: { resource: { ...services, group: "a.b" } },
    isRefused: false,
  },
]) {
  test(`DenyServiceExternalIPs ${isRefused ? "refuses" : "takes"} ${name}`, async () => {
    const operation = before === undefined ? "CREATE" : "UPDATE";
    const attributes = { operation, resource: services, subresource: "", name: "s", object: after, oldObject: before, ...more };
    const plugin = denyServiceExternalIps();
    assert.deepEqual(
      ["CREATE", "UPDATE", "DELETE"].map((of) => plugin.handles(of as "CREATE")),
      [true, true, false],
    );
    const answer = async () => plugin.validate?.(attributes as unknown as AdmissionAttributes<Service>);
    if (isRefused) await assert.rejects(answer, { code: 403, message: /Use of external IPs is denied by admission control\.$/ });
    else await answer();
  });
}
