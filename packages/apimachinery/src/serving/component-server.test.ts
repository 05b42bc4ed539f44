import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "../clock/fake-clock.ts";
import { discardLogger } from "../logging/logger.ts";
import { newMetricsRegistry } from "../metrics/registry.ts";
import { startComponentServer } from "./component-server.ts";

test("a secure port of 0 turns HTTPS off", async () => {
  const server = await startComponentServer({
    name: "kube-scheduler",
    flags: {
      "secure-port": 0,
      "bind-address": "127.0.0.1",
      "tls-cert-file": "",
      "tls-private-key-file": "",
      "cert-dir": "/nowhere",
      "tls-sni-cert-key": [],
      "tls-min-version": "",
      "tls-cipher-suites": [],
      "client-ca-file": "",
      "permit-port-sharing": false,
      "http2-max-streams-per-connection": 0,
      "authentication-kubeconfig": "",
      "authentication-skip-lookup": false,
      "authentication-tolerate-lookup-failure": false,
      "authorization-kubeconfig": "",
      "requestheader-client-ca-file": "",
      "requestheader-allowed-names": [],
      "requestheader-username-headers": [],
      "requestheader-group-headers": [],
      "requestheader-extra-headers-prefix": [],
      "authentication-token-webhook-cache-ttl": 0,
      "authorization-webhook-cache-authorized-ttl": 0,
      "authorization-webhook-cache-unauthorized-ttl": 0,
      "authorization-always-allow-paths": [],
      profiling: false,
    },
    log: { ...discardLogger } as never,
    clock: newFakeClock(),
    metrics: newMetricsRegistry({}),
    checks: {},
    configz: () => ({}),
  });
  assert.equal(server, undefined);
});
