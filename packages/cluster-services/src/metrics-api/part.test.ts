import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClientConfig } from "@coxswain/apimachinery/client/config";
import { kubeletConfig } from "./part.ts";

const config: ClientConfig = {
  ...{ host: "https://api.example:6443", caFile: "/ca.crt", certFile: "/own.crt", keyFile: "/own.key" },
  ...{ serverName: "api.example", proxyUrl: "http://proxy.example:3128", contentType: "application/vnd.kubernetes.protobuf" },
};
const url = "https://192.0.2.1:10250";
const flags = (authority = "", insecure = false) => ({
  "kubelet-certificate-authority": authority,
  "kubelet-insecure-tls": insecure,
});

test("a kubelet gets the process's own certificate, directly, and is verified under its own name by the cluster's authority", () => {
  const { userAgent, ...own } = kubeletConfig(config, url, flags());
  assert.match(String(userAgent), /^coxswain-services\/.*\/metrics-api$/);
  assert.deepEqual(own, { host: url, caFile: "/ca.crt", ca: undefined, certFile: "/own.crt", keyFile: "/own.key", qps: -1 });
});

test("another authority replaces the cluster's; without verification there is none", () => {
  const { caFile, ca, insecure } = kubeletConfig({ ...config, ca: "PEM" }, url, flags("/kubelets.crt"));
  assert.deepEqual([caFile, ca, insecure], ["/kubelets.crt", undefined, undefined]);
  const unverified = kubeletConfig({ ...config, ca: "PEM" }, url, flags("/kubelets.crt", true));
  assert.deepEqual([unverified.caFile, unverified.ca, unverified.insecure], [undefined, undefined, true]);
});
