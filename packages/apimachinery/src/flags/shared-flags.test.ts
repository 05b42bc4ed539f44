/** The values that flags shared by several programs have when they are not given. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type FlagTable, flags, parseFlags, section } from "./flags.ts";
import {
  delegatedAuthenticationFlags,
  delegatedAuthorizationFlags,
  leaderElectionFlags,
  loggingFlags,
  servingFlags,
} from "./shared-flags.ts";

const defaultsOf = (table: FlagTable): object => parseFlags(flags(section("All", table)), []).values;

test("logs", () => {
  assert.deepEqual(defaultsOf(loggingFlags), {
    "add-dir-header": false,
    alsologtostderr: false,
    "experimental-logging-sanitization": false,
    "log-backtrace-at": ":0",
    "log-dir": "",
    "log-file": "",
    "log-file-max-size": 1800,
    "log-flush-frequency": 5_000,
    "logging-format": "text",
    logtostderr: true,
    "one-output": false,
    "skip-headers": false,
    "skip-log-headers": false,
    stderrthreshold: "2",
    v: 0,
    vmodule: "",
  });
});

test("serving", () => {
  assert.deepEqual(defaultsOf(servingFlags({ certDir: "/certs", securePort: 10_000 })), {
    "bind-address": "0.0.0.0",
    "cert-dir": "/certs",
    "permit-address-sharing": false,
    "permit-port-sharing": false,
    "secure-port": 10_000,
    "tls-cert-file": "",
    "tls-cipher-suites": [],
    "tls-min-version": "",
    "tls-private-key-file": "",
    "tls-sni-cert-key": [],
  });
});

for (const toleratesLookupFailure of [true, false]) {
  test(`delegated authentication that ${toleratesLookupFailure ? "tolerates" : "does not tolerate"} a failed look-up`, () => {
    assert.deepEqual(defaultsOf(delegatedAuthenticationFlags({ toleratesLookupFailure })), {
      "authentication-kubeconfig": "",
      "authentication-skip-lookup": false,
      "authentication-token-webhook-cache-ttl": 10_000,
      "authentication-tolerate-lookup-failure": toleratesLookupFailure,
      "client-ca-file": "",
      "requestheader-allowed-names": [],
      "requestheader-client-ca-file": "",
      "requestheader-extra-headers-prefix": ["x-remote-extra-"],
      "requestheader-group-headers": ["x-remote-group"],
      "requestheader-username-headers": ["x-remote-user"],
    });
  });
}

test("delegated authorization", () => {
  assert.deepEqual(defaultsOf(delegatedAuthorizationFlags), {
    "authorization-always-allow-paths": ["/healthz", "/readyz", "/livez"],
    "authorization-kubeconfig": "",
    "authorization-webhook-cache-authorized-ttl": 10_000,
    "authorization-webhook-cache-unauthorized-ttl": 10_000,
  });
});

test("leader election", () => {
  assert.deepEqual(defaultsOf(leaderElectionFlags("the-lock")), {
    "leader-elect": true,
    "leader-elect-lease-duration": 15_000,
    "leader-elect-renew-deadline": 10_000,
    "leader-elect-resource-lock": "leases",
    "leader-elect-resource-name": "the-lock",
    "leader-elect-resource-namespace": "kube-system",
    "leader-elect-retry-period": 2_000,
  });
});
