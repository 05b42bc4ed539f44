import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface TestPair {
  readonly cert: string;
  readonly key: string;
}

/** A self-signed pair for `localhost`, `kubernetes` and 127.0.0.1, made by openssl; its own authority. */
export function testPair(commonName = "localhost"): TestPair {
  const directory = mkdtempSync(join(tmpdir(), "cox-tls-"));
  try {
    const [key, cert] = [join(directory, "key.pem"), join(directory, "cert.pem")];
    const names = "subjectAltName=DNS:localhost,DNS:kubernetes,IP:127.0.0.1";
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
    const flags = ["req", "-x509", "-nodes", ...curve, "-days", "2", "-subj", `/CN=${commonName}`, "-addext", names];
    execFileSync("openssl", [...flags, "-keyout", key, "-out", cert], { stdio: "ignore" });
    return { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
