"""What the bot says to users who look back at their sign-ins, report, block and unblock: in each language of `texts.py`.

The same rules hold as there. `{project}` and `{when}` are put in as isolates, `{not_me}` and `{unblock}` are labels.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlTexts:
    """Those sentences in one language. The `…_notice` sentences and `gone` are also shown in a pop-up of 200 characters."""

    not_me_button: str
    unblock_button: str
    sessions_command: str
    """What /sessions does, for the list of commands; so are the next two for theirs."""
    block_command: str
    unblock_command: str
    sessions: str
    """Stands above the list, with {not_me}."""
    no_sessions: str
    already_reported: str
    """Stands beside a sign-in of the list."""
    reported: str
    """Of a sign-in of which nobody got the result, with {project} and {unblock}; so is `reported_read` of another one."""
    reported_read: str
    reported_developer: str
    """Of a developer's own sign-in to the service, which ends what came of it; with {project} and {unblock}."""
    reported_notice: str
    block: str
    """Stands above the projects to choose from; so does `unblock`."""
    nothing_to_block: str
    """With {not_me}."""
    blocked: str
    """With {project}; so are `unblocked` and, of a link that was opened and with {unblock}, `blocked_link`."""
    blocked_notice: str
    unblock: str
    nothing_to_unblock: str
    unblocked: str
    unblocked_notice: str
    blocked_link: str
    gone: str


CONTROL_ENGLISH: Final = ControlTexts(
    not_me_button="This wasn’t me",
    unblock_button="Unblock",
    sessions_command="your recent sign-ins",
    block_command="keep a website or app from asking you to sign in",
    unblock_command="undo that",
    sessions="You confirmed these sign-ins in the last 30 days. If one of them was not you, tap {not_me} with its "
    "number: it is reported, and that website or app can no longer ask you to sign in.",
    no_sessions="You confirmed no sign-in in the last 30 days.",
    already_reported="You reported this one.",
    reported="Reported: the sign-in to {project} was not you. Nobody was signed in.\n\n"
    "{project} can see the report, and can no longer ask you to sign in. If this was a mistake, tap {unblock}.",
    reported_read="Reported: the sign-in to {project} was not you.\n\n"
    "Somebody did sign in with it and may still be signed in. Sign out all devices there, or ask {project} to do so.\n\n"
    "{project} can see the report, and can no longer ask you to sign in. If this was a mistake, tap {unblock}.",
    reported_developer="Reported: the sign-in to {project} was not you.\n\n"
    "Every browser is signed out of your developer account, yours too. Access tokens made with this or a later "
    "sign-in are revoked.\n\n"
    "{project} can no longer ask you to sign in. To sign in there yourself, tap {unblock} first.",
    reported_notice="Reported and blocked.",
    block="Which of these may no longer ask you to sign in?",
    nothing_to_block="There is nothing to block: you signed in to nothing lately, or have blocked all of it: see "
    "/unblock. If a request comes that you did not start, tap {not_me} below it.",
    blocked="{project} is blocked: it can no longer ask you to sign in.",
    blocked_notice="Blocked.",
    unblock="You blocked these. Which one may ask you to sign in again?",
    nothing_to_unblock="You have blocked nothing.",
    unblocked="{project} is unblocked. To sign in there, start again on its website or in its app.",
    unblocked_notice="Unblocked.",
    blocked_link="You blocked {project}, so nobody was signed in.\n\n"
    "To sign in there, tap {unblock} and start again on its website or in its app.",
    gone="There is nothing here any more that could be changed.",
)

CONTROL_RUSSIAN: Final = ControlTexts(
    not_me_button="Это не я",
    unblock_button="Разблокировать",
    sessions_command="ваши недавние входы",
    block_command="запретить сайту или приложению присылать вам запросы на вход",
    unblock_command="отменить такой запрет",
    sessions="Эти входы вы подтвердили за последние 30 дней. Если какой-то из них выполнили не вы, нажмите «{not_me}» с "
    "его номером: мы сообщим об этом, и этот сайт или приложение больше не сможет присылать вам запросы на вход.",
    no_sessions="За последние 30 дней вы не подтвердили ни одного входа.",
    already_reported="Вы уже сообщили об этом входе.",
    reported="Вы сообщили, что запрос на вход в {project} не ваш. Вход не выполнен.\n\n"
    "{project} увидит это сообщение и больше не сможет присылать вам запросы на вход. Если это ошибка, нажмите «{unblock}».",
    reported_read="Вы сообщили, что вход в {project} выполнили не вы.\n\n"
    "Этим входом кто-то воспользовался и, возможно, всё ещё находится в системе. Завершите там все сеансы или попросите "
    "{project} сделать это.\n\n"
    "{project} увидит это сообщение и больше не сможет присылать вам запросы на вход. Если это ошибка, нажмите «{unblock}».",
    reported_developer="Вы сообщили, что вход в {project} выполнили не вы.\n\n"
    "Все браузеры, включая ваш, вышли из вашей учётной записи разработчика. Токены доступа, созданные при этом или "
    "более позднем входе, отозваны.\n\n"
    "{project} больше не сможет присылать вам запросы на вход. Чтобы войти туда самостоятельно, сначала нажмите "
    "«{unblock}».",
    reported_notice="Сообщено и заблокировано.",
    block="Что из этого больше не должно присылать вам запросы на вход?",
    nothing_to_block="Блокировать нечего: в последнее время вы никуда не входили или уже всё заблокировали: смотрите "
    "/unblock. Если придёт запрос, который создали не вы, нажмите под ним «{not_me}».",
    blocked="Вы заблокировали {project}: запросов на вход оттуда больше не будет.",
    blocked_notice="Заблокировано.",
    unblock="Это вы заблокировали. Что из этого снова может присылать вам запросы на вход?",
    nothing_to_unblock="Вы ничего не заблокировали.",
    unblocked="Вы разблокировали {project}. Чтобы войти, начните заново на сайте или в приложении.",
    unblocked_notice="Разблокировано.",
    blocked_link="Вы заблокировали {project}, поэтому вход не выполнен.\n\n"
    "Чтобы войти, нажмите «{unblock}» и начните заново на сайте или в приложении.",
    gone="Здесь больше нечего изменить.",
)

CONTROL_UKRAINIAN: Final = ControlTexts(
    not_me_button="Це не я",
    unblock_button="Розблокувати",
    sessions_command="ваші нещодавні входи",
    block_command="заборонити сайту чи застосунку надсилати вам запити на вхід",
    unblock_command="скасувати таку заборону",
    sessions="Ці входи ви підтвердили за останні 30 днів. Якщо якийсь із них виконали не ви, натисніть «{not_me}» з його "
    "номером: ми повідомимо про це, і цей сайт чи застосунок більше не зможе надсилати вам запити на вхід.",
    no_sessions="За останні 30 днів ви не підтвердили жодного входу.",
    already_reported="Ви вже повідомили про цей вхід.",
    reported="Ви повідомили, що запит на вхід у {project} не ваш. Вхід не виконано.\n\n"
    "{project} побачить це повідомлення й більше не зможе надсилати вам запити на вхід. Якщо це помилка, натисніть "
    "«{unblock}».",
    reported_read="Ви повідомили, що вхід у {project} виконали не ви.\n\n"
    "Цим входом хтось скористався і, можливо, досі перебуває в системі. Завершіть там усі сеанси або попросіть {project} "
    "зробити це.\n\n"
    "{project} побачить це повідомлення й більше не зможе надсилати вам запити на вхід. Якщо це помилка, натисніть "
    "«{unblock}».",
    reported_developer="Ви повідомили, що вхід у {project} виконали не ви.\n\n"
    "Усі браузери, зокрема ваш, вийшли з вашого облікового запису розробника. Токени доступу, створені під час цього "
    "або пізнішого входу, відкликано.\n\n"
    "{project} більше не зможе надсилати вам запити на вхід. Щоб увійти туди самостійно, спершу натисніть «{unblock}».",
    reported_notice="Повідомлено й заблоковано.",
    block="Що з цього більше не має надсилати вам запити на вхід?",
    nothing_to_block="Блокувати нічого: останнім часом ви нікуди не входили або вже все заблокували: дивіться "
    "/unblock. Якщо надійде запит, який створили не ви, натисніть під ним «{not_me}».",
    blocked="Ви заблокували {project}: запитів на вхід звідти більше не буде.",
    blocked_notice="Заблоковано.",
    unblock="Це ви заблокували. Що з цього знову може надсилати вам запити на вхід?",
    nothing_to_unblock="Ви нічого не заблокували.",
    unblocked="Ви розблокували {project}. Щоб увійти, почніть знову на сайті або в застосунку.",
    unblocked_notice="Розблоковано.",
    blocked_link="Ви заблокували {project}, тому вхід не виконано.\n\n"
    "Щоб увійти, натисніть «{unblock}» і почніть знову на сайті або в застосунку.",
    gone="Тут більше нічого змінити.",
)

CONTROL_SPANISH: Final = ControlTexts(
    not_me_button="No he sido yo",
    unblock_button="Desbloquear",
    sessions_command="sus inicios de sesión recientes",
    block_command="impedir que un sitio web o una aplicación le pida iniciar sesión",
    unblock_command="deshacer ese bloqueo",
    sessions="Usted confirmó estos inicios de sesión en los últimos 30 días. Si alguno no fue suyo, pulse {not_me} con su "
    "número: quedará notificado, y ese sitio web o aplicación ya no podrá pedirle que inicie sesión.",
    no_sessions="No ha confirmado ningún inicio de sesión en los últimos 30 días.",
    already_reported="Ya ha notificado este.",
    reported="Notificado: la solicitud de inicio de sesión en {project} no era suya. Nadie ha iniciado sesión.\n\n"
    "{project} puede ver el aviso y ya no podrá pedirle que inicie sesión. Si ha sido un error, pulse {unblock}.",
    reported_read="Notificado: el inicio de sesión en {project} no fue suyo.\n\n"
    "Alguien sí entró con él y puede que siga dentro. Cierre allí la sesión en todos los dispositivos o pida a {project} "
    "que lo haga.\n\n"
    "{project} puede ver el aviso y ya no podrá pedirle que inicie sesión. Si ha sido un error, pulse {unblock}.",
    reported_developer="Notificado: el inicio de sesión en {project} no fue suyo.\n\n"
    "Se ha cerrado la sesión de su cuenta de desarrollador en todos los navegadores, también en el suyo. Los tokens "
    "de acceso creados con este inicio de sesión o con otro posterior están revocados.\n\n"
    "{project} ya no podrá pedirle que inicie sesión. Para entrar allí usted, pulse antes {unblock}.",
    reported_notice="Notificado y bloqueado.",
    block="¿Cuál de estos ya no debe pedirle que inicie sesión?",
    nothing_to_block="No hay nada que bloquear: últimamente no ha iniciado sesión en ningún sitio, o ya lo ha bloqueado "
    "todo: véalo con /unblock. Si llega una solicitud que usted no ha iniciado, pulse {not_me} debajo de ella.",
    blocked="Ha bloqueado {project}: ya no podrá pedirle que inicie sesión.",
    blocked_notice="Bloqueado.",
    unblock="Ha bloqueado estos. ¿Cuál puede volver a pedirle que inicie sesión?",
    nothing_to_unblock="No ha bloqueado nada.",
    unblocked="Ha desbloqueado {project}. Para entrar, empiece de nuevo en el sitio web o la aplicación.",
    unblocked_notice="Desbloqueado.",
    blocked_link="Usted ha bloqueado {project}, así que nadie ha iniciado sesión.\n\n"
    "Para entrar, pulse {unblock} y empiece de nuevo en el sitio web o la aplicación.",
    gone="Aquí ya no hay nada que cambiar.",
)

CONTROL_PORTUGUESE: Final = ControlTexts(
    not_me_button="Não fui eu",
    unblock_button="Desbloquear",
    sessions_command="as suas entradas recentes",
    block_command="impedir que um site ou aplicativo peça que você entre",
    unblock_command="desfazer esse bloqueio",
    sessions="Você confirmou estas entradas nos últimos 30 dias. Se alguma não foi sua, toque em {not_me} com o número "
    "dela: ela será denunciada, e esse site ou aplicativo não poderá mais pedir que você entre.",
    no_sessions="Você não confirmou nenhuma entrada nos últimos 30 dias.",
    already_reported="Você já denunciou esta.",
    reported="Denunciado: o pedido de entrada em {project} não era seu. Ninguém entrou.\n\n"
    "{project} pode ver a denúncia e não poderá mais pedir que você entre. Se foi um engano, toque em {unblock}.",
    reported_read="Denunciado: a entrada em {project} não foi sua.\n\n"
    "Alguém entrou com ela e talvez ainda esteja lá. Encerre lá a sessão em todos os dispositivos ou peça a {project} que "
    "faça isso.\n\n"
    "{project} pode ver a denúncia e não poderá mais pedir que você entre. Se foi um engano, toque em {unblock}.",
    reported_developer="Denunciado: a entrada em {project} não foi sua.\n\n"
    "A sessão da sua conta de desenvolvedor foi encerrada em todos os navegadores, também no seu. Os tokens de acesso "
    "criados com esta entrada ou com uma posterior foram revogados.\n\n"
    "{project} não poderá mais pedir que você entre. Para entrar lá, toque antes em {unblock}.",
    reported_notice="Denunciado e bloqueado.",
    block="Qual destes não deve mais pedir que você entre?",
    nothing_to_block="Não há nada para bloquear: você não entrou em nada ultimamente ou já bloqueou tudo: veja em "
    "/unblock. Se chegar um pedido que você não iniciou, toque em {not_me} abaixo dele.",
    blocked="Você bloqueou {project}: não poderá mais pedir que você entre.",
    blocked_notice="Bloqueado.",
    unblock="Você bloqueou estes. Qual pode voltar a pedir que você entre?",
    nothing_to_unblock="Você não bloqueou nada.",
    unblocked="Você desbloqueou {project}. Para entrar, comece de novo no site ou no aplicativo.",
    unblocked_notice="Desbloqueado.",
    blocked_link="Você bloqueou {project}, por isso ninguém entrou.\n\n"
    "Para entrar, toque em {unblock} e comece de novo no site ou no aplicativo.",
    gone="Já não há nada aqui que possa ser alterado.",
)

CONTROL_PERSIAN: Final = ControlTexts(
    not_me_button="من نبودم",
    unblock_button="رفع مسدودی",
    sessions_command="ورودهای اخیر شما",
    block_command="جلوگیری از درخواست ورود از سوی یک وب‌سایت یا برنامه",
    unblock_command="لغو این جلوگیری",
    sessions="این ورودها را در ۳۰ روز گذشته تأیید کرده‌اید. اگر یکی از آن‌ها کار شما نبوده است، «{not_me}» را با شمارهٔ آن "
    "بزنید: گزارش می‌شود و آن وب‌سایت یا برنامه دیگر نمی‌تواند از شما درخواست ورود کند.",
    no_sessions="در ۳۰ روز گذشته هیچ ورودی را تأیید نکرده‌اید.",
    already_reported="این یکی را گزارش کرده‌اید.",
    reported="گزارش شد: درخواست ورود به {project} از شما نبود. ورودی انجام نشد.\n\n"
    "{project} این گزارش را می‌بیند و دیگر نمی‌تواند از شما درخواست ورود کند. اگر اشتباه بود، «{unblock}» را بزنید.",
    reported_read="گزارش شد: ورود به {project} کار شما نبود.\n\n"
    "کسی با آن وارد شده و شاید هنوز داخل باشد. آنجا از همهٔ دستگاه‌ها خارج شوید یا از {project} بخواهید این کار را بکند.\n\n"
    "{project} این گزارش را می‌بیند و دیگر نمی‌تواند از شما درخواست ورود کند. اگر اشتباه بود، «{unblock}» را بزنید.",
    reported_developer="گزارش شد: ورود به {project} کار شما نبود.\n\n"
    "همهٔ مرورگرها، مرورگر خودتان هم، از حساب توسعه‌دهندهٔ شما خارج شدند. توکن‌های دسترسی که با این ورود یا ورودهای "
    "بعدی ساخته شده‌اند باطل شدند.\n\n"
    "{project} دیگر نمی‌تواند از شما درخواست ورود کند. برای اینکه خودتان وارد شوید، اول «{unblock}» را بزنید.",
    reported_notice="گزارش و مسدود شد.",
    block="کدام‌یک دیگر نباید از شما درخواست ورود کند؟",
    nothing_to_block="چیزی برای مسدود کردن نیست: به‌تازگی وارد جایی نشده‌اید یا همه را مسدود کرده‌اید: \u2066/unblock\u2069 را ببینید. "
    "اگر درخواستی آمد که شما نداده‌اید، زیر آن «{not_me}» را بزنید.",
    blocked="{project} را مسدود کردید: دیگر نمی‌تواند از شما درخواست ورود کند.",
    blocked_notice="مسدود شد.",
    unblock="این‌ها را مسدود کرده‌اید. کدام‌یک می‌تواند دوباره از شما درخواست ورود کند؟",
    nothing_to_unblock="چیزی را مسدود نکرده‌اید.",
    unblocked="{project} از مسدودی خارج شد. برای ورود، در وب‌سایت یا برنامه دوباره شروع کنید.",
    unblocked_notice="از مسدودی خارج شد.",
    blocked_link="شما {project} را مسدود کرده‌اید، پس ورودی انجام نشد.\n\n"
    "برای ورود، «{unblock}» را بزنید و در وب‌سایت یا برنامه دوباره شروع کنید.",
    gone="اینجا دیگر چیزی برای تغییر نیست.",
)

CONTROL_ARABIC: Final = ControlTexts(
    not_me_button="لم أكن أنا",
    unblock_button="إلغاء الحظر",
    sessions_command="عمليات تسجيل دخولك الأخيرة",
    block_command="منع موقع أو تطبيق من طلب تسجيل دخولك",
    unblock_command="التراجع عن هذا المنع",
    sessions="لقد أكّدت عمليات تسجيل الدخول هذه خلال آخر 30 يومًا. إذا لم تكن إحداها منك، فاضغط على «{not_me}» مع رقمها: سيتم "
    "الإبلاغ عنها، ولن يتمكن ذلك الموقع أو التطبيق من طلب تسجيل دخولك بعد ذلك.",
    no_sessions="لم تؤكّد أي تسجيل دخول خلال آخر 30 يومًا.",
    already_reported="لقد أبلغت عن هذا.",
    reported="تم الإبلاغ: طلب تسجيل الدخول إلى {project} لم يكن منك. لم يُسجَّل دخول أحد.\n\n"
    "يمكن لـ {project} رؤية البلاغ، ولن يتمكن من طلب تسجيل دخولك بعد الآن. إذا كان هذا خطأ، فاضغط على «{unblock}».",
    reported_read="تم الإبلاغ: تسجيل الدخول إلى {project} لم يكن منك.\n\n"
    "لقد دخل به شخص ما وربما لا يزال مسجَّل الدخول. سجّل الخروج هناك من جميع الأجهزة، أو اطلب ذلك من {project}.\n\n"
    "يمكن لـ {project} رؤية البلاغ، ولن يتمكن من طلب تسجيل دخولك بعد الآن. إذا كان هذا خطأ، فاضغط على «{unblock}».",
    reported_developer="تم الإبلاغ: تسجيل الدخول إلى {project} لم يكن منك.\n\n"
    "تم تسجيل خروج جميع المتصفحات من حساب المطوّر الخاص بك، ومنها متصفحك. وأُلغيت رموز الوصول التي أُنشئت بعملية "
    "تسجيل الدخول هذه أو بما تلاها.\n\n"
    "لن يتمكن {project} من طلب تسجيل دخولك بعد الآن. لتسجيل الدخول إليه بنفسك، اضغط أولًا على «{unblock}».",
    reported_notice="تم الإبلاغ والحظر.",
    block="أيّ من هذه يجب ألّا يطلب تسجيل دخولك بعد الآن؟",
    nothing_to_block="لا يوجد ما يمكن حظره: لم تسجّل الدخول إلى أي شيء مؤخرًا، أو حظرت كل ذلك: انظر \u2066/unblock\u2069. "
    "إذا وصل طلب لم تبدأه أنت، فاضغط تحته على «{not_me}».",
    blocked="لقد حظرت {project}: لن يتمكن من طلب تسجيل دخولك بعد الآن.",
    blocked_notice="تم الحظر.",
    unblock="لقد حظرت هذه. أيّ منها يمكنه أن يطلب تسجيل دخولك من جديد؟",
    nothing_to_unblock="لم تحظر شيئًا.",
    unblocked="لقد ألغيت حظر {project}. لتسجيل الدخول، ابدأ من جديد في الموقع أو التطبيق.",
    unblocked_notice="تم إلغاء الحظر.",
    blocked_link="لقد حظرت {project}، لذلك لم يُسجَّل دخول أحد.\n\n"
    "لتسجيل الدخول، اضغط على «{unblock}» ثم ابدأ من جديد في الموقع أو التطبيق.",
    gone="لم يعد هنا ما يمكن تغييره.",
)

CONTROL_INDONESIAN: Final = ControlTexts(
    not_me_button="Ini bukan saya",
    unblock_button="Buka blokir",
    sessions_command="riwayat masuk Anda baru-baru ini",
    block_command="cegah situs web atau aplikasi meminta Anda masuk",
    unblock_command="batalkan pemblokiran itu",
    sessions="Anda mengonfirmasi permintaan masuk ini dalam 30 hari terakhir. Jika salah satunya bukan Anda, ketuk {not_me} "
    "dengan nomornya: hal itu dilaporkan, dan situs web atau aplikasi tersebut tidak dapat lagi meminta Anda masuk.",
    no_sessions="Anda tidak mengonfirmasi permintaan masuk apa pun dalam 30 hari terakhir.",
    already_reported="Anda sudah melaporkan yang ini.",
    reported="Dilaporkan: permintaan masuk ke {project} bukan dari Anda. Tidak ada yang masuk.\n\n"
    "{project} dapat melihat laporan ini dan tidak dapat lagi meminta Anda masuk. Jika ini keliru, ketuk {unblock}.",
    reported_read="Dilaporkan: yang masuk ke {project} bukan Anda.\n\n"
    "Seseorang telah masuk dengannya dan mungkin masih ada di dalam. Keluarkan semua perangkat di sana, atau minta "
    "{project} melakukannya.\n\n"
    "{project} dapat melihat laporan ini dan tidak dapat lagi meminta Anda masuk. Jika ini keliru, ketuk {unblock}.",
    reported_developer="Dilaporkan: yang masuk ke {project} bukan Anda.\n\n"
    "Semua peramban dikeluarkan dari akun pengembang Anda, termasuk peramban Anda. Token akses yang dibuat dengan "
    "proses masuk ini atau sesudahnya telah dicabut.\n\n"
    "{project} tidak dapat lagi meminta Anda masuk. Untuk masuk sendiri ke sana, ketuk {unblock} dahulu.",
    reported_notice="Dilaporkan dan diblokir.",
    block="Mana yang tidak boleh lagi meminta Anda masuk?",
    nothing_to_block="Tidak ada yang dapat diblokir: belakangan ini Anda tidak masuk ke mana pun, atau sudah memblokir "
    "semuanya: lihat /unblock. Jika datang permintaan yang tidak Anda mulai, ketuk {not_me} di bawahnya.",
    blocked="{project} diblokir: tidak dapat lagi meminta Anda masuk.",
    blocked_notice="Diblokir.",
    unblock="Anda memblokir ini. Mana yang boleh meminta Anda masuk lagi?",
    nothing_to_unblock="Anda tidak memblokir apa pun.",
    unblocked="Blokir {project} dibuka. Untuk masuk, silakan mulai lagi di situs web atau aplikasinya.",
    unblocked_notice="Blokir dibuka.",
    blocked_link="Anda memblokir {project}, jadi tidak ada yang masuk.\n\n"
    "Untuk masuk, ketuk {unblock} lalu mulai lagi di situs web atau aplikasinya.",
    gone="Di sini tidak ada lagi yang dapat diubah.",
)

CONTROL_TURKISH: Final = ControlTexts(
    not_me_button="Bu ben değildim",
    unblock_button="Engeli kaldır",
    sessions_command="son oturum açmalarınız",
    block_command="bir web sitesinin veya uygulamanın sizden oturum açmanızı istemesini engelle",
    unblock_command="bu engeli kaldır",
    sessions="Son 30 günde bu oturum açmaları onayladınız. Biri size ait değilse numarasıyla “{not_me}” düğmesine dokunun: "
    "bildirilir ve o web sitesi veya uygulama artık sizden oturum açmanızı isteyemez.",
    no_sessions="Son 30 günde hiçbir oturum açmayı onaylamadınız.",
    already_reported="Bunu bildirdiniz.",
    reported="Bildirildi: {project} için oturum açma isteği size ait değildi. Oturum açılmadı.\n\n"
    "{project} bu bildirimi görebilir ve artık sizden oturum açmanızı isteyemez. Bu bir hataysa “{unblock}” düğmesine dokunun.",
    reported_read="Bildirildi: {project} için oturumu açan siz değildiniz.\n\n"
    "Biri bununla oturum açtı ve oturumu hâlâ açık olabilir. Orada tüm cihazlardaki oturumları kapatın veya bunu {project} "
    "sahibinden isteyin.\n\n"
    "{project} bu bildirimi görebilir ve artık sizden oturum açmanızı isteyemez. Bu bir hataysa “{unblock}” düğmesine dokunun.",
    reported_developer="Bildirildi: {project} için oturumu açan siz değildiniz.\n\n"
    "Sizinki de dahil tüm tarayıcılarda geliştirici hesabınızın oturumu kapatıldı. Bu oturum açmayla veya daha "
    "sonrakilerle oluşturulan erişim belirteçleri iptal edildi.\n\n"
    "{project} artık sizden oturum açmanızı isteyemez. Oraya kendiniz girmek için önce “{unblock}” düğmesine dokunun.",
    reported_notice="Bildirildi ve engellendi.",
    block="Hangisi artık sizden oturum açmanızı istemesin?",
    nothing_to_block="Engellenecek bir şey yok: son zamanlarda hiçbir yerde oturum açmadınız veya hepsini zaten "
    "engellediniz: /unblock ile bakın. Sizin başlatmadığınız bir istek gelirse altındaki “{not_me}” düğmesine dokunun.",
    blocked="{project} engellendi: artık sizden oturum açmanızı isteyemez.",
    blocked_notice="Engellendi.",
    unblock="Bunları engellediniz. Hangisi yeniden sizden oturum açmanızı isteyebilsin?",
    nothing_to_unblock="Hiçbir şeyi engellemediniz.",
    unblocked="{project} engeli kaldırıldı. Oturum açmak için web sitesinde veya uygulamada yeniden başlayın.",
    unblocked_notice="Engel kaldırıldı.",
    blocked_link="{project} sizin tarafınızdan engellendi, bu yüzden oturum açılmadı.\n\n"
    "Oturum açmak için “{unblock}” düğmesine dokunun ve web sitesinde veya uygulamada yeniden başlayın.",
    gone="Burada artık değiştirilebilecek bir şey yok.",
)

CONTROL_UZBEK: Final = ControlTexts(
    not_me_button="Bu men emasman",
    unblock_button="Blokdan chiqarish",
    sessions_command="so‘nggi kirishlaringiz",
    block_command="sayt yoki ilova sizdan kirishni so‘rashini taqiqlash",
    unblock_command="bu taqiqni bekor qilish",
    sessions="So‘nggi 30 kunda siz mana shu kirishlarni tasdiqladingiz. Agar ulardan biri siz bo‘lmasangiz, uning raqami "
    "bilan “{not_me}” tugmasini bosing: bu haqda xabar beriladi va o‘sha sayt yoki ilova sizdan boshqa kirishni so‘ray "
    "olmaydi.",
    no_sessions="So‘nggi 30 kunda siz hech qanday kirishni tasdiqlamadingiz.",
    already_reported="Bu haqda xabar bergansiz.",
    reported="Xabar berildi: {project} tizimiga kirish so‘rovi sizniki emas edi. Kirish amalga oshirilmadi.\n\n"
    "{project} bu xabarni ko‘ra oladi va sizdan boshqa kirishni so‘ray olmaydi. Agar bu xato bo‘lsa, “{unblock}” tugmasini "
    "bosing.",
    reported_read="Xabar berildi: {project} tizimiga kirgan siz emas edingiz.\n\n"
    "Kimdir bu orqali kirgan va hali ham tizimda bo‘lishi mumkin. U yerda barcha qurilmalardan chiqing yoki {project} "
    "egasidan shuni so‘rang.\n\n"
    "{project} bu xabarni ko‘ra oladi va sizdan boshqa kirishni so‘ray olmaydi. Agar bu xato bo‘lsa, “{unblock}” tugmasini "
    "bosing.",
    reported_developer="Xabar berildi: {project} tizimiga kirgan siz emas edingiz.\n\n"
    "Barcha brauzerlarda, shu jumladan siznikida ham, dasturchi hisobingizdan chiqildi. Shu kirish yoki undan keyingi "
    "kirishlar bilan yaratilgan kirish tokenlari bekor qilindi.\n\n"
    "{project} sizdan boshqa kirishni so‘ray olmaydi. U yerga o‘zingiz kirish uchun avval “{unblock}” tugmasini "
    "bosing.",
    reported_notice="Xabar berildi va bloklandi.",
    block="Bulardan qaysi biri sizdan boshqa kirishni so‘ramasin?",
    nothing_to_block="Bloklaydigan narsa yo‘q: so‘nggi paytda siz hech qayerga kirmagansiz yoki hammasini bloklab "
    "bo‘lgansiz: /unblock ga qarang. Agar siz boshlamagan so‘rov kelsa, uning ostidagi “{not_me}” tugmasini bosing.",
    blocked="{project} bloklandi: u sizdan boshqa kirishni so‘ray olmaydi.",
    blocked_notice="Bloklandi.",
    unblock="Siz bularni bloklagansiz. Qaysi biri sizdan yana kirishni so‘rashi mumkin?",
    nothing_to_unblock="Siz hech narsani bloklamagansiz.",
    unblocked="{project} blokdan chiqarildi. Kirish uchun sayt yoki ilovada qaytadan boshlang.",
    unblocked_notice="Blokdan chiqarildi.",
    blocked_link="Siz {project} tizimini bloklagansiz, shuning uchun kirish amalga oshirilmadi.\n\n"
    "Kirish uchun “{unblock}” tugmasini bosing va sayt yoki ilovada qaytadan boshlang.",
    gone="Bu yerda endi o‘zgartiradigan narsa yo‘q.",
)
