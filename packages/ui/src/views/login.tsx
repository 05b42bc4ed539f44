import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { type Session, signIn } from "../parts/session.ts";

interface LoginProps {
  readonly message: string;
  readonly onSession: (session: Session) => void;
}

export function Login({ message, onSession }: LoginProps): JSX.Element {
  const [token, setToken] = useState("");
  const [isAsking, setAsking] = useState(false);
  const submit = async (): Promise<void> => {
    setAsking(true);
    const session = await signIn(token.trim());
    setAsking(false);
    onSession(session);
  };
  return (
    <main class="login">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <img src="icon.svg" alt="" width="44" height="44" />
        <h1>Coxswain</h1>
        <p class="dim">The cluster, live, with the rights of your account.</p>
        <label for="token">Bearer token</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          required
          value={token}
          aria-describedby="token-help"
          onInput={({ currentTarget }) => setToken(currentTarget.value)}
        />
        {message !== "" && (
          <p class="note" role="alert">
            {message}
          </p>
        )}
        <button type="submit" class="primary" disabled={isAsking}>
          {isAsking ? "Signing in…" : "Sign in"}
        </button>
        <p id="token-help" class="dim small">
          It is kept in this tab only. Without a token: run <code>kubectl proxy</code> and open{" "}
          <code>http://127.0.0.1:8001/ui/</code>, or give the browser your client certificate.
        </p>
      </form>
    </main>
  );
}
