import assert from "node:assert/strict";
import { test } from "node:test";
import { WebhookReinvocation } from "./reinvocation.ts";

const object = (value: string) => ({ metadata: { name: "a" }, data: { value } });

test("webhooks that were called before a change are called again, those behind it are not", () => {
  const reinvocation = new WebhookReinvocation();
  reinvocation.requested("first");
  reinvocation.changed();
  reinvocation.requested("second");
  assert.deepEqual(
    ["first", "second", "other"].map((id) => reinvocation.mustAskAgain(id)),
    [true, false, false],
  );
  reinvocation.changed();
  assert.equal(reinvocation.mustAskAgain("second"), true, "by the next change they are");
});

for (const { name, before, after, want } of [
  { name: "the object stayed as it was", before: object("x"), after: object("x"), want: false },
  { name: "a plugin has changed the object", before: object("x"), after: object("y"), want: true },
  { name: "a deletion has no object", before: undefined, after: undefined, want: false },
]) {
  test(`a webhook is ${want ? "" : "not "}called again when ${name} since the last webhook`, () => {
    const reinvocation = new WebhookReinvocation();
    reinvocation.requested("hook");
    reinvocation.leave(before);
    reinvocation.comeBack(after);
    assert.equal(reinvocation.mustAskAgain("hook"), want);
  });
}

test("a plugin that changes the object in place is noticed", () => {
  const reinvocation = new WebhookReinvocation();
  const changed = object("x");
  reinvocation.requested("hook");
  reinvocation.leave(changed);
  changed.data.value = "y";
  reinvocation.comeBack(changed);
  assert.equal(reinvocation.mustAskAgain("hook"), true);
});
