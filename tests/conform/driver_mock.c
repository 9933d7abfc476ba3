/* SPDX-License-Identifier: MIT */
/* The row of the mock driver; see conform.h. Without a script it waits until it is told. */
#include "conform/conform.h"
#include "io/mock/mock.h"

#include <stdlib.h>

static int create(struct sni_driver **driver)
{
    struct sni_mock *mock = malloc(sizeof(*mock));
    if (mock == NULL)
        return -ENOMEM;
    sni_mock_init(mock, NULL, 0);
    *driver = &mock->driver;
    return 0;
}

static void destroy(struct sni_driver *driver)
{
    sni_driver_finish(driver);
    free(sni_container_of(driver, struct sni_mock, driver));
}

static void set_ready(struct sni_driver *driver, int fd, unsigned events)
{
    sni_mock_set_ready(sni_container_of(driver, struct sni_mock, driver), fd, events);
}

const struct conform_driver conform_driver = {
    .name = "mock", .create = create, .destroy = destroy, .set_ready = set_ready};
