import assert from "node:assert/strict";
import { test } from "node:test";
import { answerLimitBytes, kubeletRecipient, nodeOfRecipient } from "./question.ts";

test("the recipient of a question is a component or the kubelet of a node", () => {
  assert.equal(nodeOfRecipient(kubeletRecipient("n1")), "n1");
  assert.equal(kubeletRecipient("kubelet.n1"), "kubelet.kubelet.n1");
  assert.equal(nodeOfRecipient("kubelet.kubelet.n1"), "kubelet.n1");
  for (const component of ["kube-scheduler", "kubelet", "a.kubelet.n1"]) assert.equal(nodeOfRecipient(component), undefined);
});

test("the answers to one question have at most 128 KiB", () => assert.equal(answerLimitBytes, 131_072));
