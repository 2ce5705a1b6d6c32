/** That no setting, and no variable that programs usually find, is taken for a misspelled setting. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { gatewayWarnings } from "../../gateway/config.ts";
import { launcherWarnings } from "../../launcher/config.ts";
import { serviceWarnings } from "../../services/config.ts";

const rows = readFileSync("docs/configuration.md", "utf8")
  .split("\n")
  .filter((line) => /^\| `[A-Z_]+`/.test(line));
const settings = rows.flatMap((row) => row.split("|")[1]?.match(/[A-Z_]+/g) ?? []);

const usual = `
PATH HOME SHELL LANG LANGUAGE LC_ALL LC_CTYPE LC_TIME TERM TERM_PROGRAM COLORTERM USER USERNAME LOGNAME PWD OLDPWD SHLVL
HOSTNAME HOSTTYPE MACHTYPE OSTYPE DISPLAY EDITOR VISUAL PAGER LESS LESSOPEN MAIL TZ CI DEBUG TMPDIR TMP TEMP PS1 LINES
COLUMNS LS_COLORS NO_COLOR FORCE_COLOR INIT_CWD NODE NODE_ENV NODE_OPTIONS NODE_PATH NODE_EXTRA_CA_CERTS
NODE_COMPILE_CACHE npm_config_loglevel npm_config_cache npm_lifecycle_event npm_package_name npm_execpath npm_command
HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy ALL_PROXY SSH_AUTH_SOCK SSH_CLIENT SSH_TTY SSL_CERT_FILE
SSL_CERT_DIR XDG_RUNTIME_DIR XDG_DATA_DIRS XDG_DATA_HOME XDG_CONFIG_DIRS XDG_SESSION_ID DBUS_SESSION_BUS_ADDRESS
GITHUB_ACTIONS GITHUB_TOKEN GITHUB_SHA RUNNER_OS AWS_REGION AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
GOOGLE_APPLICATION_CREDENTIALS KUBERNETES_SERVICE_HOST KUBERNETES_PORT KUBERNETES_PORT_443_TCP_ADDR PET_SERVICE_HOST
PET_SERVICE_PORT PET_PORT PET_PORT_8081_TCP ORDER_PORT ORDER_SERVICE_HOST INVENTORY_PORT GATEWAY_PORT POD_NAME POD_IP HOST_IP
DATABASE_URL REDIS_URL REDIS_HOST REDIS_PORT DB_HOST DB_PORT DB_URL PGHOST PGPORT PGDATA PGUSER MYSQL_HOST LISTEN_PID
LISTEN_FDNAMES NOTIFY_SOCKET INVOCATION_ID JOURNAL_STREAM SYSTEMD_EXEC_PID WATCHDOG_USEC DYNO WEB_CONCURRENCY WEB_URL
API_URL BASE_URL PUBLIC_URL APP_URL API_KEY API_TOKEN SECRET_KEY_BASE JWT_SECRET JWT_KEY SESSION_SECRET AUTH_SECRET AUTH_URL
AUTH_TOKEN LOG_DIR LOG_FILE DATA DATA_PATH MAX_WORKERS MAX_RETRIES UV_THREADPOOL_SIZE MALLOC_ARENA_MAX VIRTUAL_ENV
JAVA_HOME GOPATH GOROOT CARGO_HOME NVM_DIR NVM_BIN VOLTA_HOME WSL_DISTRO_NAME PROCESSOR_ARCHITECTURE COMSPEC APPDATA
USERPROFILE WINDIR PATHEXT VITEST VITEST_WORKER_ID MODE DEV PROD SSR TEST BASE PETSTORE_URL CREDENTIAL PETSTORE_TEST_STORE
PETSTORE_TEST_REPLICAS HISTORY_RUNS HISTORY_SEED ROLLING_REQUESTS ROLLING_DOORS MONGOD OTEL_SERVICE_NAME SENTRY_DSN HISTSIZE
MANPATH WINDOWID GPG_TTY DOCKER_HOST COMPOSE_PROJECT_NAME CONTAINER_ID container _`
  .trim()
  .split(/\s+/);

describe.each(Object.entries({ launcherWarnings, gatewayWarnings, serviceWarnings }))("%s", (_, warnings) => {
  const misspelled = (name: string) => warnings({ [name]: "1" }).filter(({ text }) => text.includes("perhaps"));

  test("of what docs/configuration.md lists", () => {
    expect(settings.length).toBeGreaterThan(30);
    expect(settings.flatMap(misspelled)).toEqual([]);
  });
  test("of what is usual", () => expect(usual.flatMap(misspelled)).toEqual([]));
  test("of a setting that is written otherwise", () => {
    expect(misspelled("AUTHMODE")).toEqual([
      { name: "AUTHMODE", text: "AUTHMODE has no effect: perhaps AUTH_MODE is meant." },
    ]);
  });
});
