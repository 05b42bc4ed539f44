import { defineConfig } from "vitest/config";

// Namespaces take 5 s to go. The limits of `eventually` are shorter and say more.
export default defineConfig({ test: { testTimeout: 60_000, hookTimeout: 60_000 } });
