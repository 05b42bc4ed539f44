import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { runtimeSuite } from "../runtime/suite.ts";
import { newFakeRuntime } from "./fake-runtime.ts";

runtimeSuite("fake runtime", async () => {
  const runtime = newFakeRuntime(realClock);
  runtime.addImage("registry.test/busybox:1");
  return { runtime, image: "registry.test/busybox:1", logDirectory: "/tmp/logs" };
});
