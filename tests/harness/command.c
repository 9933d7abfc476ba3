/* SPDX-License-Identifier: MIT */
/* command.c - the world outside a test: programs, files, directories.
 *
 * Commands are started with posix_spawn, not fork, so that tests with threads may use them under
 * the thread sanitizer. Their output goes to a memfd rather than a pipe: nothing has to be read
 * while they run, and a process they leave behind cannot keep the reader waiting. */
#include "harness_priv.h"

#include <glob.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_on_path(const char *program)
{
    if (strchr(program, '/') != NULL)
        return access(program, X_OK) == 0;
    const char *path = getenv("PATH");
    while (path != NULL && *path != '\0') {
        char candidate[4096];
        size_t bytes = strcspn(path, ":");
        snprintf(candidate, sizeof candidate, "%.*s/%s", (int)bytes, path, program);
        if (access(candidate, X_OK) == 0)
            return true;
        path += bytes + (path[bytes] == ':');
    }
    return false;
}

void require_tool(const char *program, const char *group)
{
    if (!is_on_path(program))
        SKIP("needs %s; enable with: tools/setup %s", program, group);
}

/* Start the shell; 0 or an error number. */
static int spawn_shell(char *line, int output_fd, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc != 0)
        return rc;
    rc = posix_spawn_file_actions_adddup2(&actions, output_fd, STDOUT_FILENO);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(&actions, output_fd, STDERR_FILENO);
    if (rc == 0) {
        char sh[] = "sh";
        char c[] = "-c";
        char *argv[] = {sh, c, line, NULL};
        rc = posix_spawn(pid, "/bin/sh", &actions, NULL, argv, environ);
    }
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

static int wait_for(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            harness_fail(NULL, 0, "cannot wait for a command: %s", strerror(errno));
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

struct command run_command(const char *fmt, ...)
{
    struct command command = {0};
    char *line = NULL;
    pid_t pid;
    va_list args;
    va_start(args, fmt);
    if (vasprintf(&line, fmt, args) < 0)
        harness_fail(NULL, 0, "no memory for a command line");
    va_end(args);
    int output_fd = memfd_create("command output", MFD_CLOEXEC);
    if (output_fd < 0)
        harness_fail(NULL, 0, "cannot capture the output of '%s': %s", line, strerror(errno));
    int rc = spawn_shell(line, output_fd, &pid);
    if (rc != 0)
        harness_fail(NULL, 0, "cannot run '%s': %s", line, strerror(rc));
    command.status = wait_for(pid);
    command.output = read_fd(output_fd, &command.output_bytes);
    if (command.output == NULL)
        harness_fail(NULL, 0, "no memory for the output of '%s'", line);
    close(output_fd);
    free(line);
    return command;
}

void command_finish(struct command *command)
{
    free(command->output);
    *command = (struct command){0};
}

char *read_file(const char *path)
{
    size_t bytes;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        harness_fail(NULL, 0, "cannot open %s: %s", path, strerror(errno));
    char *text = read_fd(fd, &bytes);
    if (text == NULL)
        harness_fail(NULL, 0, "cannot read %s: %s", path, strerror(errno));
    close(fd);
    return text;
}

static const char *path_setting(const char *variable, const char *built_in)
{
    const char *value = getenv(variable);
    return value != NULL && *value != '\0' ? value : built_in;
}

const char *source_path(void)
{
    return path_setting("SINEW_SOURCE_DIR", SINEW_SOURCE_DIR);
}

const char *build_path(void)
{
    return path_setting("SINEW_BUILD_DIR", SINEW_BUILD_DIR);
}

/* The name is formed on the card itself, so that the runner knows it whatever happens next. */
static void make_temp_dir(void)
{
    char *path = card_current()->temp_dir;
    const char *parent = path_setting("TMPDIR", "/tmp");
    int bytes = snprintf(path, PATH_BYTES, "%s/sinew-test-XXXXXX", parent);
    if (bytes < 0 || bytes >= PATH_BYTES || mkdtemp(path) == NULL) {
        path[0] = '\0';
        harness_fail(NULL, 0, "cannot make a directory in %s: %s", parent, strerror(errno));
    }
}

const char *temp_dir(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_temp_dir);
    return card_current()->temp_dir;
}

/* Making a directory accessible on the way down, and removing everything on the way up. */
static int open_up(const char *path, const struct stat *st, int kind, struct FTW *place)
{
    (void)place;
    if (kind == FTW_DNR || (kind == FTW_D && (st->st_mode & 0700) != 0700))
        (void)chmod(path, 0700);
    return 0;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *place)
{
    (void)st;
    (void)kind;
    (void)place;
    (void)remove(path);
    return 0;
}

void temp_dir_remove(const char *path)
{
    enum { TRIES = 20, FDS = 16 };
    /* Processes killed a moment ago may still be writing; give them a moment to be gone. */
    for (int i = 0; i < TRIES; i++) {
        (void)nftw(path, open_up, FDS, FTW_PHYS);
        (void)nftw(path, remove_entry, FDS, FTW_PHYS | FTW_DEPTH);
        if (access(path, F_OK) < 0)
            return;
        usleep(5000);
    }
    fprintf(stderr, "harness: cannot remove the temporary directory %s\n", path);
}

void each_source(const char *pattern, size_t least, void (*fn)(const char *path, const void *arg),
                 const void *arg)
{
    char full[1024];
    glob_t files;
    snprintf(full, sizeof(full), "%s/%s", source_path(), pattern);
    if (glob(full, 0, NULL, &files) != 0 || files.gl_pathc < least)
        FAIL("%s: there should be at least %zu such files", full, least);
    for (size_t i = 0; i < files.gl_pathc; i++)
        fn(files.gl_pathv[i], arg);
    globfree(&files);
}
