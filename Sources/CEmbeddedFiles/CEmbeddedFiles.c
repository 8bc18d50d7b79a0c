#include "CEmbeddedFiles.h"

#include <string.h>

// `#embed` includes the files as they are, and the build notices when one changes. SwiftPM's embedded resources become
// Swift array literals, which cost a minute of every build of the modules that had them.
#ifndef __has_embed
#error "this compiler has no #embed: take Swift 6.2 or later, or clang 19 or later"
#endif
// SwiftPM compiles C as C17, where clang has `#embed` as an extension and would warn for each file.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char belfry_live_d_ts[] = {
#embed "../RelayServer/Live/belfry-live.d.ts"
};
static const unsigned char belfry_live_js[] = {
#embed "../RelayServer/Live/belfry-live.js"
};
static const unsigned char live_page_js[] = {
#embed "../RelayServer/Live/live-page.js"
};
static const unsigned char live_html[] = {
#embed "../RelayServer/Live/live.html"
};
static const unsigned char openapi_json[] = {
#embed "../RelayServer/OpenAPI/openapi.json"
};
static const unsigned char access_js[] = {
#embed "../RelayServer/Console/Pages/access.js"
};
static const unsigned char api_js[] = {
#embed "../RelayServer/Console/Pages/api.js"
};
static const unsigned char condition_js[] = {
#embed "../RelayServer/Console/Pages/condition.js"
};
static const unsigned char console_css[] = {
#embed "../RelayServer/Console/Pages/console.css"
};
static const unsigned char console_js[] = {
#embed "../RelayServer/Console/Pages/console.js"
};
static const unsigned char containers_js[] = {
#embed "../RelayServer/Console/Pages/containers.js"
};
static const unsigned char deliveries_js[] = {
#embed "../RelayServer/Console/Pages/deliveries.js"
};
static const unsigned char dom_js[] = {
#embed "../RelayServer/Console/Pages/dom.js"
};
static const unsigned char drafts_js[] = {
#embed "../RelayServer/Console/Pages/drafts.js"
};
static const unsigned char explain_js[] = {
#embed "../RelayServer/Console/Pages/explain.js"
};
static const unsigned char icon_svg[] = {
#embed "../RelayServer/Console/Pages/icon.svg"
};
static const unsigned char index_html[] = {
#embed "../RelayServer/Console/Pages/index.html"
};
static const unsigned char journal_js[] = {
#embed "../RelayServer/Console/Pages/journal.js"
};
static const unsigned char now_js[] = {
#embed "../RelayServer/Console/Pages/now.js"
};
static const unsigned char numbers_js[] = {
#embed "../RelayServer/Console/Pages/numbers.js"
};
static const unsigned char parked_js[] = {
#embed "../RelayServer/Console/Pages/parked.js"
};
static const unsigned char parts_js[] = {
#embed "../RelayServer/Console/Pages/parts.js"
};
static const unsigned char phones_js[] = {
#embed "../RelayServer/Console/Pages/phones.js"
};
static const unsigned char plot_js[] = {
#embed "../RelayServer/Console/Pages/plot.js"
};
static const unsigned char pushes_js[] = {
#embed "../RelayServer/Console/Pages/pushes.js"
};
static const unsigned char rehearse_js[] = {
#embed "../RelayServer/Console/Pages/rehearse.js"
};
static const unsigned char route_js[] = {
#embed "../RelayServer/Console/Pages/route.js"
};
static const unsigned char send_js[] = {
#embed "../RelayServer/Console/Pages/send.js"
};
static const unsigned char table_js[] = {
#embed "../RelayServer/Console/Pages/table.js"
};
static const unsigned char tail_js[] = {
#embed "../RelayServer/Console/Pages/tail.js"
};
static const unsigned char text_js[] = {
#embed "../RelayServer/Console/Pages/text.js"
};
static const unsigned char users_js[] = {
#embed "../RelayServer/Console/Pages/users.js"
};
static const unsigned char v0001_createSchema_sql[] = {
#embed "../../Migrations/sql/v0001_createSchema.sql"
};
static const unsigned char v0002_recordSnapshots_sql[] = {
#embed "../../Migrations/sql/v0002_recordSnapshots.sql"
};
static const unsigned char v0003_addRetryLane_sql[] = {
#embed "../../Migrations/sql/v0003_addRetryLane.sql"
};
static const unsigned char v0004_keepHouse_sql[] = {
#embed "../../Migrations/sql/v0004_keepHouse.sql"
};
static const unsigned char v0005_keepRecords_sql[] = {
#embed "../../Migrations/sql/v0005_keepRecords.sql"
};
static const unsigned char v0006_keepNotifications_sql[] = {
#embed "../../Migrations/sql/v0006_keepNotifications.sql"
};
static const unsigned char v0007_endMarks_sql[] = {
#embed "../../Migrations/sql/v0007_endMarks.sql"
};
static const unsigned char v0008_boundCosts_sql[] = {
#embed "../../Migrations/sql/v0008_boundCosts.sql"
};
static const unsigned char v0009_countBacklog_sql[] = {
#embed "../../Migrations/sql/v0009_countBacklog.sql"
};
static const unsigned char v0010_witnessStore_sql[] = {
#embed "../../Migrations/sql/v0010_witnessStore.sql"
};
static const unsigned char v0011_scopeDevices_sql[] = {
#embed "../../Migrations/sql/v0011_scopeDevices.sql"
};
static const unsigned char v0012_sealSecrets_sql[] = {
#embed "../../Migrations/sql/v0012_sealSecrets.sql"
};
static const unsigned char v0013_disableDear_sql[] = {
#embed "../../Migrations/sql/v0013_disableDear.sql"
};
static const unsigned char v0014_countQuotas_sql[] = {
#embed "../../Migrations/sql/v0014_countQuotas.sql"
};
static const unsigned char v0015_setRates_sql[] = {
#embed "../../Migrations/sql/v0015_setRates.sql"
};
static const unsigned char v0016_endZones_sql[] = {
#embed "../../Migrations/sql/v0016_endZones.sql"
};
static const unsigned char v0017_keepPast_sql[] = {
#embed "../../Migrations/sql/v0017_keepPast.sql"
};
static const unsigned char v0018_markRequests_sql[] = {
#embed "../../Migrations/sql/v0018_markRequests.sql"
};
static const unsigned char v0019_tellHealth_sql[] = {
#embed "../../Migrations/sql/v0019_tellHealth.sql"
};
static const unsigned char v0020_keepKindness_sql[] = {
#embed "../../Migrations/sql/v0020_keepKindness.sql"
};
static const unsigned char v0022_listNewest_sql[] = {
#embed "../../Migrations/sql/v0022_listNewest.sql"
};
static const unsigned char v0023_countSeen_sql[] = {
#embed "../../Migrations/sql/v0023_countSeen.sql"
};
static const unsigned char v0024_keepThrottles_sql[] = {
#embed "../../Migrations/sql/v0024_keepThrottles.sql"
};
static const unsigned char v0025_checkByComparing_sql[] = {
#embed "../../Migrations/sql/v0025_checkByComparing.sql"
};
static const unsigned char v0026_markIndexed_sql[] = {
#embed "../../Migrations/sql/v0026_markIndexed.sql"
};
static const unsigned char v0027_findOwn_sql[] = {
#embed "../../Migrations/sql/v0027_findOwn.sql"
};
static const unsigned char v0028_findLive_sql[] = {
#embed "../../Migrations/sql/v0028_findLive.sql"
};
static const unsigned char v0029_forgetTypes_sql[] = {
#embed "../../Migrations/sql/v0029_forgetTypes.sql"
};
static const unsigned char v0030_listSessions_sql[] = {
#embed "../../Migrations/sql/v0030_listSessions.sql"
};
static const unsigned char v0031_pruneSessions_sql[] = {
#embed "../../Migrations/sql/v0031_pruneSessions.sql"
};
static const unsigned char v0032_countZones_sql[] = {
#embed "../../Migrations/sql/v0032_countZones.sql"
};
static const unsigned char v0033_countGrants_sql[] = {
#embed "../../Migrations/sql/v0033_countGrants.sql"
};
static const unsigned char v0034_endVersions_sql[] = {
#embed "../../Migrations/sql/v0034_endVersions.sql"
};
static const unsigned char v0035_forgetUsers_sql[] = {
#embed "../../Migrations/sql/v0035_forgetUsers.sql"
};
static const unsigned char p0001_createSchema_sql[] = {
#embed "../../Migrations/postgresql/p0001_createSchema.sql"
};
static const unsigned char p0002_keepThrottles_sql[] = {
#embed "../../Migrations/postgresql/p0002_keepThrottles.sql"
};
static const unsigned char p0003_nameEndpoints_sql[] = {
#embed "../../Migrations/postgresql/p0003_nameEndpoints.sql"
};
static const unsigned char p0004_tellWarmth_sql[] = {
#embed "../../Migrations/postgresql/p0004_tellWarmth.sql"
};
static const unsigned char p0005_tellSettings_sql[] = {
#embed "../../Migrations/postgresql/p0005_tellSettings.sql"
};
static const unsigned char p0006_nameMachines_sql[] = {
#embed "../../Migrations/postgresql/p0006_nameMachines.sql"
};
static const unsigned char p0007_markIndexed_sql[] = {
#embed "../../Migrations/postgresql/p0007_markIndexed.sql"
};
static const unsigned char p0008_findOwn_sql[] = {
#embed "../../Migrations/postgresql/p0008_findOwn.sql"
};
static const unsigned char p0009_findLive_sql[] = {
#embed "../../Migrations/postgresql/p0009_findLive.sql"
};
static const unsigned char p0010_forgetTypes_sql[] = {
#embed "../../Migrations/postgresql/p0010_forgetTypes.sql"
};
static const unsigned char p0011_countOnce_sql[] = {
#embed "../../Migrations/postgresql/p0011_countOnce.sql"
};
static const unsigned char p0012_listSessions_sql[] = {
#embed "../../Migrations/postgresql/p0012_listSessions.sql"
};
static const unsigned char p0013_pruneSessions_sql[] = {
#embed "../../Migrations/postgresql/p0013_pruneSessions.sql"
};
static const unsigned char p0014_countZones_sql[] = {
#embed "../../Migrations/postgresql/p0014_countZones.sql"
};
static const unsigned char p0015_countGrants_sql[] = {
#embed "../../Migrations/postgresql/p0015_countGrants.sql"
};
static const unsigned char p0016_endVersions_sql[] = {
#embed "../../Migrations/postgresql/p0016_endVersions.sql"
};
static const unsigned char p0017_forgetUsers_sql[] = {
#embed "../../Migrations/postgresql/p0017_forgetUsers.sql"
};

static const struct {
    const char *name;
    const unsigned char *bytes;
    size_t count;
} files[] = {
    {"belfry-live.d.ts", belfry_live_d_ts, sizeof belfry_live_d_ts},
    {"belfry-live.js", belfry_live_js, sizeof belfry_live_js},
    {"live-page.js", live_page_js, sizeof live_page_js},
    {"live.html", live_html, sizeof live_html},
    {"openapi.json", openapi_json, sizeof openapi_json},
    {"access.js", access_js, sizeof access_js},
    {"api.js", api_js, sizeof api_js},
    {"condition.js", condition_js, sizeof condition_js},
    {"console.css", console_css, sizeof console_css},
    {"console.js", console_js, sizeof console_js},
    {"containers.js", containers_js, sizeof containers_js},
    {"deliveries.js", deliveries_js, sizeof deliveries_js},
    {"dom.js", dom_js, sizeof dom_js},
    {"drafts.js", drafts_js, sizeof drafts_js},
    {"explain.js", explain_js, sizeof explain_js},
    {"icon.svg", icon_svg, sizeof icon_svg},
    {"index.html", index_html, sizeof index_html},
    {"journal.js", journal_js, sizeof journal_js},
    {"now.js", now_js, sizeof now_js},
    {"numbers.js", numbers_js, sizeof numbers_js},
    {"parked.js", parked_js, sizeof parked_js},
    {"parts.js", parts_js, sizeof parts_js},
    {"phones.js", phones_js, sizeof phones_js},
    {"plot.js", plot_js, sizeof plot_js},
    {"pushes.js", pushes_js, sizeof pushes_js},
    {"rehearse.js", rehearse_js, sizeof rehearse_js},
    {"route.js", route_js, sizeof route_js},
    {"send.js", send_js, sizeof send_js},
    {"table.js", table_js, sizeof table_js},
    {"tail.js", tail_js, sizeof tail_js},
    {"text.js", text_js, sizeof text_js},
    {"users.js", users_js, sizeof users_js},
    {"v0001_createSchema.sql", v0001_createSchema_sql, sizeof v0001_createSchema_sql},
    {"v0002_recordSnapshots.sql", v0002_recordSnapshots_sql, sizeof v0002_recordSnapshots_sql},
    {"v0003_addRetryLane.sql", v0003_addRetryLane_sql, sizeof v0003_addRetryLane_sql},
    {"v0004_keepHouse.sql", v0004_keepHouse_sql, sizeof v0004_keepHouse_sql},
    {"v0005_keepRecords.sql", v0005_keepRecords_sql, sizeof v0005_keepRecords_sql},
    {"v0006_keepNotifications.sql", v0006_keepNotifications_sql, sizeof v0006_keepNotifications_sql},
    {"v0007_endMarks.sql", v0007_endMarks_sql, sizeof v0007_endMarks_sql},
    {"v0008_boundCosts.sql", v0008_boundCosts_sql, sizeof v0008_boundCosts_sql},
    {"v0009_countBacklog.sql", v0009_countBacklog_sql, sizeof v0009_countBacklog_sql},
    {"v0010_witnessStore.sql", v0010_witnessStore_sql, sizeof v0010_witnessStore_sql},
    {"v0011_scopeDevices.sql", v0011_scopeDevices_sql, sizeof v0011_scopeDevices_sql},
    {"v0012_sealSecrets.sql", v0012_sealSecrets_sql, sizeof v0012_sealSecrets_sql},
    {"v0013_disableDear.sql", v0013_disableDear_sql, sizeof v0013_disableDear_sql},
    {"v0014_countQuotas.sql", v0014_countQuotas_sql, sizeof v0014_countQuotas_sql},
    {"v0015_setRates.sql", v0015_setRates_sql, sizeof v0015_setRates_sql},
    {"v0016_endZones.sql", v0016_endZones_sql, sizeof v0016_endZones_sql},
    {"v0017_keepPast.sql", v0017_keepPast_sql, sizeof v0017_keepPast_sql},
    {"v0018_markRequests.sql", v0018_markRequests_sql, sizeof v0018_markRequests_sql},
    {"v0019_tellHealth.sql", v0019_tellHealth_sql, sizeof v0019_tellHealth_sql},
    {"v0020_keepKindness.sql", v0020_keepKindness_sql, sizeof v0020_keepKindness_sql},
    {"v0022_listNewest.sql", v0022_listNewest_sql, sizeof v0022_listNewest_sql},
    {"v0023_countSeen.sql", v0023_countSeen_sql, sizeof v0023_countSeen_sql},
    {"v0024_keepThrottles.sql", v0024_keepThrottles_sql, sizeof v0024_keepThrottles_sql},
    {"v0025_checkByComparing.sql", v0025_checkByComparing_sql, sizeof v0025_checkByComparing_sql},
    {"v0026_markIndexed.sql", v0026_markIndexed_sql, sizeof v0026_markIndexed_sql},
    {"v0027_findOwn.sql", v0027_findOwn_sql, sizeof v0027_findOwn_sql},
    {"v0028_findLive.sql", v0028_findLive_sql, sizeof v0028_findLive_sql},
    {"v0029_forgetTypes.sql", v0029_forgetTypes_sql, sizeof v0029_forgetTypes_sql},
    {"v0030_listSessions.sql", v0030_listSessions_sql, sizeof v0030_listSessions_sql},
    {"v0031_pruneSessions.sql", v0031_pruneSessions_sql, sizeof v0031_pruneSessions_sql},
    {"v0032_countZones.sql", v0032_countZones_sql, sizeof v0032_countZones_sql},
    {"v0033_countGrants.sql", v0033_countGrants_sql, sizeof v0033_countGrants_sql},
    {"v0034_endVersions.sql", v0034_endVersions_sql, sizeof v0034_endVersions_sql},
    {"v0035_forgetUsers.sql", v0035_forgetUsers_sql, sizeof v0035_forgetUsers_sql},
    {"p0001_createSchema.sql", p0001_createSchema_sql, sizeof p0001_createSchema_sql},
    {"p0002_keepThrottles.sql", p0002_keepThrottles_sql, sizeof p0002_keepThrottles_sql},
    {"p0003_nameEndpoints.sql", p0003_nameEndpoints_sql, sizeof p0003_nameEndpoints_sql},
    {"p0004_tellWarmth.sql", p0004_tellWarmth_sql, sizeof p0004_tellWarmth_sql},
    {"p0005_tellSettings.sql", p0005_tellSettings_sql, sizeof p0005_tellSettings_sql},
    {"p0006_nameMachines.sql", p0006_nameMachines_sql, sizeof p0006_nameMachines_sql},
    {"p0007_markIndexed.sql", p0007_markIndexed_sql, sizeof p0007_markIndexed_sql},
    {"p0008_findOwn.sql", p0008_findOwn_sql, sizeof p0008_findOwn_sql},
    {"p0009_findLive.sql", p0009_findLive_sql, sizeof p0009_findLive_sql},
    {"p0010_forgetTypes.sql", p0010_forgetTypes_sql, sizeof p0010_forgetTypes_sql},
    {"p0011_countOnce.sql", p0011_countOnce_sql, sizeof p0011_countOnce_sql},
    {"p0012_listSessions.sql", p0012_listSessions_sql, sizeof p0012_listSessions_sql},
    {"p0013_pruneSessions.sql", p0013_pruneSessions_sql, sizeof p0013_pruneSessions_sql},
    {"p0014_countZones.sql", p0014_countZones_sql, sizeof p0014_countZones_sql},
    {"p0015_countGrants.sql", p0015_countGrants_sql, sizeof p0015_countGrants_sql},
    {"p0016_endVersions.sql", p0016_endVersions_sql, sizeof p0016_endVersions_sql},
    {"p0017_forgetUsers.sql", p0017_forgetUsers_sql, sizeof p0017_forgetUsers_sql},
};

const unsigned char *belfry_embedded_file(const char *name, size_t *count) {
    for (size_t index = 0; index < sizeof files / sizeof files[0]; index++) {
        if (strcmp(files[index].name, name) == 0) {
            *count = files[index].count;
            return files[index].bytes;
        }
    }
    return NULL;
}
