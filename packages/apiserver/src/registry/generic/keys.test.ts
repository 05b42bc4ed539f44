import assert from "node:assert/strict";
import { test } from "node:test";
import { isBadRequest } from "@coxswain/apimachinery/objects/errors/predicates";
import { FieldSelector } from "@coxswain/apimachinery/objects/selectors/field-selector";
import { pathSegmentFaults } from "@coxswain/apimachinery/objects/validation/dns";
import { storageKey, storagePrefix } from "./store.ts";

for (const { name, want } of [
  { name: "web-0", want: [] },
  { name: "...", want: [] },
  { name: ".", want: ["may not be '.'"] },
  { name: "..", want: ["may not be '..'"] },
  { name: "a/b", want: ["may not contain '/'"] },
  { name: "a%2Fb", want: ["may not contain '%'"] },
  { name: "a/b%", want: ["may not contain '/'", "may not contain '%'"] },
]) {
  test(`the name ${name} as a part of a path: ${want.join() || "fine"}`, () => assert.deepEqual(pathSegmentFaults(name), want));
}

for (const { namespaced, namespace, name, want } of [
  { namespaced: true, namespace: "web", name: "a", want: "web/a" },
  { namespaced: false, namespace: "", name: "a", want: "a" },
  { namespaced: false, namespace: "../x", name: "a", want: "a" },
  { namespaced: true, namespace: "", name: "a", want: /^Namespace parameter required\.$/ },
  { namespaced: true, namespace: "web", name: "", want: /^Name parameter required\.$/ },
  { namespaced: false, namespace: "", name: "a/b", want: /^Name parameter invalid: "a\/b": may not contain '\/'$/ },
  { namespaced: true, namespace: "..", name: "a", want: /^Namespace parameter invalid: "\.\.": may not be '\.\.'$/ },
  { namespaced: true, namespace: "web/b", name: "a", want: /^Namespace parameter invalid: "web\/b": may not contain '\/'$/ },
]) {
  test(`the key of ${JSON.stringify(name)} in ${JSON.stringify(namespace)}${namespaced ? "" : " of the cluster"}: ${want}`, () => {
    if (typeof want === "string") assert.equal(storageKey(namespaced, namespace, name), want);
    else
      assert.throws(
        () => storageKey(namespaced, namespace, name),
        (err) => isBadRequest(err) && want.test((err as Error).message),
      );
  });
}

for (const { namespaced, namespace, fields, want } of [
  { namespaced: true, namespace: "", fields: "", want: "" },
  { namespaced: true, namespace: "web", fields: "", want: "web/" },
  { namespaced: true, namespace: "web", fields: "metadata.name=a", want: "web/a" },
  { namespaced: true, namespace: "web", fields: "metadata.name=a,spec.nodeName=n", want: "web/a" },
  { namespaced: true, namespace: "web", fields: "metadata.name!=a", want: "web/" },
  { namespaced: true, namespace: "web", fields: "metadata.name=", want: "web/" },
  { namespaced: true, namespace: "web", fields: "metadata.name=../db/a", want: "web/" },
  { namespaced: true, namespace: "", fields: "metadata.name=a", want: "" },
  { namespaced: false, namespace: "", fields: "metadata.name=a", want: "a" },
  { namespaced: false, namespace: "", fields: "metadata.name=..", want: "" },
  { namespaced: true, namespace: "..", fields: "", want: /Namespace parameter invalid/ },
]) {
  test(`a list of ${JSON.stringify(namespace)}${namespaced ? "" : " (cluster)"} by ${JSON.stringify(fields)} reads ${want}`, () => {
    const prefix = (): string => storagePrefix(namespaced, namespace, FieldSelector.parse(fields));
    if (typeof want === "string") assert.equal(prefix(), want);
    else assert.throws(prefix, want);
  });
}
