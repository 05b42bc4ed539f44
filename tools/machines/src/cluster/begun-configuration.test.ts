import assert from "node:assert/strict";
import { test } from "node:test";
import { readDocuments } from "../config/documents.ts";
import { begunText } from "./begun-configuration.ts";

test("an interrupted init's configuration is read as given, without tokens and keys", () => {
  const text = begunText({
    InitConfiguration: {
      nodeRegistration: { name: "m1", taints: [], kubeletExtraArgs: { v: "4" } },
      localAPIEndpoint: { bindPort: 8443 },
      bootstrapTokens: [{ token: "abcdef.0123456789abcdef" }],
      certificateKey: "0123",
    },
    ClusterConfiguration: { networking: { podSubnet: "10.20.0.0/16" }, apiServer: { certSANs: ["api.example"] } },
    KubeletConfiguration: { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration", maxPods: 77 },
  });
  assert.doesNotMatch(text, /abcdef|0123/);
  assert.deepEqual(readDocuments(text, "f"), {
    InitConfiguration: {
      nodeRegistration: { name: "m1", taints: [], kubeletExtraArgs: { v: "4" } },
      localAPIEndpoint: { bindPort: 8443 },
    },
    ClusterConfiguration: { networking: { podSubnet: "10.20.0.0/16" }, apiServer: { certSANs: ["api.example"] } },
    KubeletConfiguration: { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration", maxPods: 77 },
  });
  assert.deepEqual(readDocuments(begunText({}), "f"), {
    InitConfiguration: { nodeRegistration: {}, localAPIEndpoint: {} },
    ClusterConfiguration: {},
  });
});
