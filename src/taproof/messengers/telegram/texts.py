"""What the bot says, in each language.

A language is one `Texts` object in `LANGUAGES`: mypy names every sentence that is missing. The sentences are plain
text, sent as HTML: no `<`, `>` or `&` in them. Ages use words or units that need no plural forms. `{project}` and
`{when}` are put in as isolates, so they may stand anywhere in a right-to-left sentence.
"""

from dataclasses import dataclass
from typing import Final

from taproof.messengers.telegram import context_texts, control_texts, phone_texts
from taproof.messengers.telegram.context_texts import ContextTexts
from taproof.messengers.telegram.control_texts import ControlTexts
from taproof.messengers.telegram.phone_texts import PhoneTexts


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Every sentence of the bot in one language.

    The `…_notice` sentences, `foreign`, `unknown` and `stale_button` are also shown in a pop-up, which holds 200 characters.
    `{n}` in `seconds_ago` is 5 to 119, in `minutes_ago` at least 2.
    """

    confirm_button: str
    cancel_button: str
    prompt: str
    """With {project}, {age} and {cancel}, the label of the Cancel button; {context} are the lines that tell where the
    request came from, {choose} is `choose_code` or nothing."""
    choose_code: str
    """With {cancel}: in place of Confirm there are three numbers."""
    just_now: str
    seconds_ago: str
    minutes_ago: str
    confirmed: str
    """With {project} and {when}; so have `cancelled` and `mismatched`."""
    cancelled: str
    mismatched: str
    expired: str
    """With {project}."""
    confirmed_notice: str
    """With {when}; so have `cancelled_notice` and `mismatched_notice`."""
    cancelled_notice: str
    mismatched_notice: str
    expired_notice: str
    foreign: str
    unknown: str
    stale_button: str
    """Of a button that this service did not make for this message, or that is of an earlier release."""
    help: str
    too_many: str
    """Of prompts that this user opened."""
    private_only: str
    context: ContextTexts
    """Where a request came from."""
    phone: PhoneTexts
    """How a phone number is asked for."""
    control: ControlTexts
    """What it says to users who look after their sign-ins."""


_ENGLISH: Final = Texts(
    context=context_texts.CONTEXT_ENGLISH,
    control=control_texts.CONTROL_ENGLISH,
    phone=phone_texts.PHONE_ENGLISH,
    confirm_button="Confirm",
    cancel_button="Cancel",
    prompt="Sign in to {project}?\n\n{context}Requested: {age}.\n\n{choose}If you did not start this, tap {cancel}.",
    choose_code="Choose the number that the page shows. If it shows none, tap {cancel}.",
    just_now="just now",
    seconds_ago="{n} seconds ago",
    minutes_ago="{n} minutes ago",
    confirmed="You confirmed the sign-in to {project}.\n{when}\n\nYou can go back to where you started.",
    cancelled="You cancelled the sign-in to {project}.\n{when}\n\nNobody was signed in.",
    mismatched="That is not the number that the page shows, so the sign-in to {project} was cancelled.\n{when}\n\n"
    "If you started it, start again there. If somebody sent you the link, do not open it again.",
    expired="The request to sign in to {project} has expired. Nobody was signed in.\n\nTo sign in, start again there.",
    confirmed_notice="Confirmed: {when}",
    cancelled_notice="Cancelled: {when}",
    mismatched_notice="Wrong number. Cancelled: {when}",
    expired_notice="This request has expired. To sign in, start again.",
    foreign="This request belongs to someone else. To sign in yourself, start again on the website or in the app.",
    unknown="This request is unknown or no longer valid. To sign in, start again on the website or in the app.",
    stale_button="This button no longer works. To sign in, open the link again. For anything else, send the command again.",
    help="I sign you in to websites and apps without a password.\n\n"
    "Choose to sign in there and open the link or scan the code that you are shown. "
    "I will then ask you here to confirm.",
    too_many="You have opened many sign-in requests in a short time. Wait some minutes, then open the link again.\n\n"
    "If somebody else sends you such links, do not open them.",
    private_only="Please open a private chat with me: sign-in requests are answered only there.",
)

_RUSSIAN: Final = Texts(
    context=context_texts.CONTEXT_RUSSIAN,
    control=control_texts.CONTROL_RUSSIAN,
    phone=phone_texts.PHONE_RUSSIAN,
    confirm_button="Подтвердить",
    cancel_button="Отменить",
    prompt="Войти в {project}?\n\n{context}Запрос создан: {age}.\n\n{choose}Если вы этого не делали, нажмите «{cancel}».",
    choose_code="Выберите число, которое показывает страница. Если числа там нет, нажмите «{cancel}».",
    just_now="только что",
    seconds_ago="{n} сек. назад",
    minutes_ago="{n} мин. назад",
    confirmed="Вы подтвердили вход в {project}.\n{when}\n\nМожно вернуться туда, откуда вы начали.",
    cancelled="Вы отменили вход в {project}.\n{when}\n\nВход не выполнен.",
    mismatched="Это не то число, которое показывает страница, поэтому вход в {project} отменён.\n{when}\n\n"
    "Если вы входили сами, начните заново. Если ссылку вам прислали, больше её не открывайте.",
    expired="Срок действия запроса на вход в {project} истёк. Вход не выполнен.\n\nЧтобы войти, начните заново.",
    confirmed_notice="Подтверждено: {when}",
    cancelled_notice="Отменено: {when}",
    mismatched_notice="Неверное число. Отменено: {when}",
    expired_notice="Срок действия запроса истёк. Чтобы войти, начните заново.",
    foreign="Этот запрос принадлежит другому пользователю. Чтобы войти под своей учётной записью, начните заново на сайте или в приложении.",
    unknown="Этот запрос неизвестен или больше не действует. Чтобы войти, начните заново на сайте или в приложении.",
    stale_button="Эта кнопка больше не действует. Чтобы войти, откройте ссылку снова. Для остального отправьте команду ещё раз.",
    help="Я помогаю входить на сайты и в приложения без пароля.\n\n"
    "Выберите там вход через мессенджер и откройте ссылку или отсканируйте код. "
    "После этого я попрошу вас подтвердить вход здесь.",
    too_many="Вы открыли много запросов на вход за короткое время. Подождите несколько минут и откройте ссылку снова.\n\n"
    "Если такие ссылки вам присылает кто-то другой, не открывайте их.",
    private_only="Пожалуйста, откройте личный чат со мной: на запросы входа я отвечаю только там.",
)

_UKRAINIAN: Final = Texts(
    context=context_texts.CONTEXT_UKRAINIAN,
    control=control_texts.CONTROL_UKRAINIAN,
    phone=phone_texts.PHONE_UKRAINIAN,
    confirm_button="Підтвердити",
    cancel_button="Скасувати",
    prompt="Увійти в {project}?\n\n{context}Запит створено: {age}.\n\n{choose}Якщо ви цього не робили, натисніть «{cancel}».",
    choose_code="Виберіть число, яке показує сторінка. Якщо числа там немає, натисніть «{cancel}».",
    just_now="щойно",
    seconds_ago="{n} с тому",
    minutes_ago="{n} хв тому",
    confirmed="Ви підтвердили вхід у {project}.\n{when}\n\nМожна повернутися туди, звідки ви почали.",
    cancelled="Ви скасували вхід у {project}.\n{when}\n\nВхід не виконано.",
    mismatched="Це не те число, яке показує сторінка, тому вхід у {project} скасовано.\n{when}\n\n"
    "Якщо ви входили самі, почніть знову. Якщо посилання вам надіслали, більше його не відкривайте.",
    expired="Термін дії запиту на вхід у {project} минув. Вхід не виконано.\n\nЩоб увійти, почніть знову.",
    confirmed_notice="Підтверджено: {when}",
    cancelled_notice="Скасовано: {when}",
    mismatched_notice="Хибне число. Скасовано: {when}",
    expired_notice="Термін дії запиту минув. Щоб увійти, почніть знову.",
    foreign="Цей запит належить іншому користувачеві. Щоб увійти під своїм обліковим записом, почніть знову на сайті або в застосунку.",
    unknown="Цей запит невідомий або вже не дійсний. Щоб увійти, почніть знову на сайті або в застосунку.",
    stale_button="Ця кнопка більше не діє. Щоб увійти, відкрийте посилання знову. Для іншого надішліть команду ще раз.",
    help="Я допомагаю входити на сайти та в застосунки без пароля.\n\n"
    "Виберіть там вхід через месенджер і відкрийте посилання або відскануйте код. "
    "Після цього я попрошу вас підтвердити вхід тут.",
    too_many="Ви відкрили багато запитів на вхід за короткий час. Зачекайте кілька хвилин і відкрийте посилання знову.\n\n"
    "Якщо такі посилання вам надсилає хтось інший, не відкривайте їх.",
    private_only="Будь ласка, відкрийте приватний чат зі мною: на запити входу я відповідаю лише там.",
)

_SPANISH: Final = Texts(
    context=context_texts.CONTEXT_SPANISH,
    control=control_texts.CONTROL_SPANISH,
    phone=phone_texts.PHONE_SPANISH,
    confirm_button="Confirmar",
    cancel_button="Cancelar",
    prompt="¿Iniciar sesión en {project}?\n\n{context}Solicitado: {age}.\n\n{choose}Si usted no lo ha solicitado, pulse {cancel}.",
    choose_code="Elija el número que muestra la página. Si no muestra ninguno, pulse {cancel}.",
    just_now="ahora mismo",
    seconds_ago="hace {n} segundos",
    minutes_ago="hace {n} minutos",
    confirmed="Ha confirmado el inicio de sesión en {project}.\n{when}\n\nYa puede volver a donde empezó.",
    cancelled="Ha cancelado el inicio de sesión en {project}.\n{when}\n\nNadie ha iniciado sesión.",
    mismatched="Ese no es el número que muestra la página, así que el inicio de sesión en {project} se ha cancelado.\n{when}\n\n"
    "Si lo inició usted, empiece de nuevo allí. Si alguien le envió el enlace, no vuelva a abrirlo.",
    expired="La solicitud de inicio de sesión en {project} ha caducado. Nadie ha iniciado sesión.\n\nPara entrar, empiece de nuevo.",
    confirmed_notice="Confirmado: {when}",
    cancelled_notice="Cancelado: {when}",
    mismatched_notice="Número equivocado. Cancelado: {when}",
    expired_notice="Esta solicitud ha caducado. Para entrar, empiece de nuevo.",
    foreign="Esta solicitud pertenece a otra persona. Para iniciar sesión usted, empiece de nuevo en el sitio web o la aplicación.",
    unknown="Esta solicitud no existe o ya no es válida. Para iniciar sesión, empiece de nuevo en el sitio web o la aplicación.",
    stale_button="Este botón ya no funciona. Para entrar, vuelva a abrir el enlace. Para lo demás, envíe de nuevo el comando.",
    help="Le ayudo a iniciar sesión en sitios web y aplicaciones sin contraseña.\n\n"
    "Elija allí iniciar sesión con su cuenta de mensajería y abra el enlace o escanee el código que se le muestre. "
    "Después le pediré aquí que lo confirme.",
    too_many="Ha abierto muchas solicitudes de inicio de sesión en poco tiempo. Espere unos minutos y vuelva a abrir el enlace.\n\n"
    "Si otra persona le envía esos enlaces, no los abra.",
    private_only="Por favor, abra un chat privado conmigo: solo allí respondo a las solicitudes de inicio de sesión.",
)

_PORTUGUESE: Final = Texts(
    context=context_texts.CONTEXT_PORTUGUESE,
    control=control_texts.CONTROL_PORTUGUESE,
    phone=phone_texts.PHONE_PORTUGUESE,
    confirm_button="Confirmar",
    cancel_button="Cancelar",
    prompt="Entrar em {project}?\n\n{context}Solicitado: {age}.\n\n{choose}Se não foi você que iniciou isto, toque em {cancel}.",
    choose_code="Escolha o número que a página mostra. Se ela não mostra nenhum, toque em {cancel}.",
    just_now="agora mesmo",
    seconds_ago="há {n} segundos",
    minutes_ago="há {n} minutos",
    confirmed="Você confirmou a entrada em {project}.\n{when}\n\nJá pode voltar para onde começou.",
    cancelled="Você cancelou a entrada em {project}.\n{when}\n\nNinguém entrou.",
    mismatched="Esse não é o número que a página mostra, por isso a entrada em {project} foi cancelada.\n{when}\n\n"
    "Se foi você que começou, comece de novo por lá. Se alguém lhe enviou o link, não o abra mais.",
    expired="O pedido de entrada em {project} expirou. Ninguém entrou.\n\nPara entrar, comece de novo.",
    confirmed_notice="Confirmado: {when}",
    cancelled_notice="Cancelado: {when}",
    mismatched_notice="Número errado. Cancelado: {when}",
    expired_notice="Este pedido expirou. Para entrar, comece de novo.",
    foreign="Este pedido pertence a outra pessoa. Para entrar com a sua conta, comece de novo no site ou no aplicativo.",
    unknown="Este pedido é desconhecido ou já não é válido. Para entrar, comece de novo no site ou no aplicativo.",
    stale_button="Este botão já não funciona. Para entrar, abra o link de novo. Para o resto, envie o comando de novo.",
    help="Eu ajudo você a entrar em sites e aplicativos sem senha.\n\n"
    "Escolha lá entrar com a sua conta do mensageiro e abra o link ou escaneie o código exibido. "
    "Depois pedirei aqui a sua confirmação.",
    too_many="Você abriu muitos pedidos de entrada em pouco tempo. Espere alguns minutos e abra o link de novo.\n\n"
    "Se outra pessoa lhe envia esses links, não os abra.",
    private_only="Por favor, abra uma conversa privada comigo: só respondo a pedidos de entrada por lá.",
)

_PERSIAN: Final = Texts(
    context=context_texts.CONTEXT_PERSIAN,
    control=control_texts.CONTROL_PERSIAN,
    phone=phone_texts.PHONE_PERSIAN,
    confirm_button="تأیید",
    cancel_button="لغو",
    prompt="می‌خواهید وارد {project} شوید؟\n\n{context}زمان درخواست: {age}.\n\n{choose}اگر شما این درخواست را نداده‌اید، «{cancel}» را بزنید.",
    choose_code="عددی را که صفحه نشان می‌دهد انتخاب کنید. اگر عددی نشان نمی‌دهد، «{cancel}» را بزنید.",
    just_now="همین حالا",
    seconds_ago="{n} ثانیه پیش",
    minutes_ago="{n} دقیقه پیش",
    confirmed="شما ورود به {project} را تأیید کردید.\n{when}\n\nمی‌توانید به جایی که از آن آغاز کردید برگردید.",
    cancelled="شما ورود به {project} را لغو کردید.\n{when}\n\nورودی انجام نشد.",
    mismatched="این عددی نیست که صفحه نشان می‌دهد، بنابراین ورود به {project} لغو شد.\n{when}\n\n"
    "اگر خودتان شروع کرده بودید، دوباره از همان‌جا شروع کنید. اگر کسی پیوند را برایتان فرستاده است، دیگر آن را باز نکنید.",
    expired="مهلت درخواست ورود به {project} تمام شده است. ورودی انجام نشد.\n\nبرای ورود، دوباره از همان‌جا شروع کنید.",
    confirmed_notice="تأیید شد: {when}",
    cancelled_notice="لغو شد: {when}",
    mismatched_notice="عدد نادرست. لغو شد: {when}",
    expired_notice="مهلت این درخواست تمام شده است. برای ورود، دوباره شروع کنید.",
    foreign="این درخواست متعلق به شخص دیگری است. اگر خودتان می‌خواهید وارد شوید، در وب‌سایت یا برنامه دوباره شروع کنید.",
    unknown="این درخواست ناشناخته است یا دیگر معتبر نیست. برای ورود، در وب‌سایت یا برنامه دوباره شروع کنید.",
    stale_button="این دکمه دیگر کار نمی‌کند. برای ورود، پیوند را دوباره باز کنید. برای کارهای دیگر، فرمان را دوباره بفرستید.",
    help="من به شما کمک می‌کنم بدون گذرواژه وارد وب‌سایت‌ها و برنامه‌ها شوید.\n\n"
    "در آنجا ورود با پیام‌رسان را انتخاب کنید و پیوند را باز کنید یا کد را اسکن کنید. "
    "سپس من همین‌جا از شما تأیید می‌خواهم.",
    too_many="شما در زمانی کوتاه درخواست‌های ورود زیادی را باز کرده‌اید. چند دقیقه صبر کنید و سپس پیوند را دوباره باز کنید.\n\n"
    "اگر شخص دیگری چنین پیوندهایی برایتان می‌فرستد، آن‌ها را باز نکنید.",
    private_only="لطفاً یک گفتگوی خصوصی با من باز کنید: فقط آنجا به درخواست‌های ورود پاسخ می‌دهم.",
)

_ARABIC: Final = Texts(
    context=context_texts.CONTEXT_ARABIC,
    control=control_texts.CONTROL_ARABIC,
    phone=phone_texts.PHONE_ARABIC,
    confirm_button="تأكيد",
    cancel_button="إلغاء",
    prompt="هل تريد تسجيل الدخول إلى {project}؟\n\n{context}وقت الطلب: {age}.\n\n{choose}إذا لم تكن أنت من بدأ هذا، فاضغط على «{cancel}».",
    choose_code="اختر الرقم الذي تعرضه الصفحة. إذا لم تعرض أي رقم، فاضغط على «{cancel}».",
    just_now="الآن",
    seconds_ago="قبل {n} ث",
    minutes_ago="قبل {n} د",
    confirmed="لقد أكّدت تسجيل الدخول إلى {project}.\n{when}\n\nيمكنك العودة إلى حيث بدأت.",
    cancelled="لقد ألغيت تسجيل الدخول إلى {project}.\n{when}\n\nلم يُسجَّل دخول أحد.",
    mismatched="ليس هذا هو الرقم الذي تعرضه الصفحة، لذلك أُلغي تسجيل الدخول إلى {project}.\n{when}\n\n"
    "إذا كنت أنت من بدأه، فابدأ من جديد هناك. وإذا أرسل إليك أحد الرابط، فلا تفتحه مرة أخرى.",
    expired="انتهت صلاحية طلب تسجيل الدخول إلى {project}. لم يُسجَّل دخول أحد.\n\nلتسجيل الدخول، ابدأ من جديد.",
    confirmed_notice="تم التأكيد: {when}",
    cancelled_notice="تم الإلغاء: {when}",
    mismatched_notice="رقم خاطئ. تم الإلغاء: {when}",
    expired_notice="انتهت صلاحية هذا الطلب. لتسجيل الدخول، ابدأ من جديد.",
    foreign="هذا الطلب يخص شخصًا آخر. لتسجيل دخولك أنت، ابدأ من جديد في الموقع أو التطبيق.",
    unknown="هذا الطلب غير معروف أو لم يعد صالحًا. لتسجيل الدخول، ابدأ من جديد في الموقع أو التطبيق.",
    stale_button="لم يعد هذا الزر يعمل. لتسجيل الدخول، افتح الرابط مرة أخرى. ولغير ذلك، أرسل الأمر مرة أخرى.",
    help="أساعدك على تسجيل الدخول إلى المواقع والتطبيقات دون كلمة مرور.\n\n"
    "اختر هناك تسجيل الدخول عبر تطبيق المراسلة، ثم افتح الرابط أو امسح الرمز الذي يظهر لك. "
    "بعد ذلك سأطلب منك التأكيد هنا.",
    too_many="لقد فتحت طلبات كثيرة لتسجيل الدخول في وقت قصير. انتظر بضع دقائق ثم افتح الرابط من جديد.\n\n"
    "إذا كان شخص آخر يرسل إليك هذه الروابط، فلا تفتحها.",
    private_only="يُرجى فتح محادثة خاصة معي: لا أرد على طلبات تسجيل الدخول إلا هناك.",
)

_INDONESIAN: Final = Texts(
    context=context_texts.CONTEXT_INDONESIAN,
    control=control_texts.CONTROL_INDONESIAN,
    phone=phone_texts.PHONE_INDONESIAN,
    confirm_button="Konfirmasi",
    cancel_button="Batalkan",
    prompt="Masuk ke {project}?\n\n{context}Diminta: {age}.\n\n{choose}Jika bukan Anda yang memulai ini, ketuk {cancel}.",
    choose_code="Pilih angka yang ditampilkan halaman. Jika tidak ada angka di sana, ketuk {cancel}.",
    just_now="baru saja",
    seconds_ago="{n} detik yang lalu",
    minutes_ago="{n} menit yang lalu",
    confirmed="Anda telah mengonfirmasi masuk ke {project}.\n{when}\n\nAnda dapat kembali ke tempat Anda memulai.",
    cancelled="Anda telah membatalkan masuk ke {project}.\n{when}\n\nTidak ada yang masuk.",
    mismatched="Itu bukan angka yang ditampilkan halaman, jadi permintaan masuk ke {project} dibatalkan.\n{when}\n\n"
    "Jika Anda yang memulainya, silakan mulai lagi di sana. Jika seseorang mengirimkan tautannya, jangan buka lagi.",
    expired="Permintaan masuk ke {project} telah kedaluwarsa. Tidak ada yang masuk.\n\nUntuk masuk, silakan mulai lagi.",
    confirmed_notice="Dikonfirmasi: {when}",
    cancelled_notice="Dibatalkan: {when}",
    mismatched_notice="Angka salah. Dibatalkan: {when}",
    expired_notice="Permintaan ini telah kedaluwarsa. Untuk masuk, silakan mulai lagi.",
    foreign="Permintaan ini milik orang lain. Jika Anda ingin masuk, silakan mulai lagi di situs web atau aplikasinya.",
    unknown="Permintaan ini tidak dikenal atau tidak berlaku lagi. Untuk masuk, silakan mulai lagi di situs web atau aplikasinya.",
    stale_button="Tombol ini sudah tidak berlaku. Untuk masuk, buka tautannya lagi. Untuk hal lain, kirim perintahnya lagi.",
    help="Saya membantu Anda masuk ke situs web dan aplikasi tanpa kata sandi.\n\n"
    "Di sana, pilih masuk dengan akun perpesanan Anda, lalu buka tautan atau pindai kode yang ditampilkan. "
    "Setelah itu saya akan meminta konfirmasi Anda di sini.",
    too_many="Anda membuka banyak permintaan masuk dalam waktu singkat. Tunggu beberapa menit, lalu buka tautannya lagi.\n\n"
    "Jika orang lain mengirimi Anda tautan seperti itu, jangan dibuka.",
    private_only="Silakan buka obrolan pribadi dengan saya: permintaan masuk hanya saya jawab di sana.",
)

_TURKISH: Final = Texts(
    context=context_texts.CONTEXT_TURKISH,
    control=control_texts.CONTROL_TURKISH,
    phone=phone_texts.PHONE_TURKISH,
    confirm_button="Onayla",
    cancel_button="İptal et",
    prompt="{project} için oturum açılsın mı?\n\n{context}İstek zamanı: {age}.\n\n{choose}Bunu siz başlatmadıysanız “{cancel}” düğmesine dokunun.",
    choose_code="Sayfanın gösterdiği sayıyı seçin. Sayfa sayı göstermiyorsa “{cancel}” düğmesine dokunun.",
    just_now="az önce",
    seconds_ago="{n} saniye önce",
    minutes_ago="{n} dakika önce",
    confirmed="{project} için oturum açmayı onayladınız.\n{when}\n\nBaşladığınız yere dönebilirsiniz.",
    cancelled="{project} için oturum açmayı iptal ettiniz.\n{when}\n\nOturum açılmadı.",
    mismatched="Bu, sayfanın gösterdiği sayı değil; bu yüzden {project} için oturum açma iptal edildi.\n{when}\n\n"
    "Bunu siz başlattıysanız orada yeniden başlayın. Bağlantıyı size başkası gönderdiyse bir daha açmayın.",
    expired="{project} için oturum açma isteğinin süresi doldu. Oturum açılmadı.\n\nOturum açmak için lütfen yeniden başlayın.",
    confirmed_notice="Onaylandı: {when}",
    cancelled_notice="İptal edildi: {when}",
    mismatched_notice="Yanlış sayı. İptal edildi: {when}",
    expired_notice="Bu isteğin süresi doldu. Oturum açmak için lütfen yeniden başlayın.",
    foreign="Bu istek başka birine ait. Kendiniz oturum açmak için lütfen web sitesinde veya uygulamada yeniden başlayın.",
    unknown="Bu istek bilinmiyor veya artık geçerli değil. Oturum açmak için lütfen web sitesinde veya uygulamada yeniden başlayın.",
    stale_button="Bu düğme artık çalışmıyor. Oturum açmak için bağlantıyı yeniden açın. Diğer işler için komutu yeniden gönderin.",
    help="Web sitelerinde ve uygulamalarda parola olmadan oturum açmanızı sağlarım.\n\n"
    "Orada mesajlaşma hesabınızla oturum açmayı seçin, ardından gösterilen bağlantıyı açın veya kodu tarayın. "
    "Sonra burada onayınızı isteyeceğim.",
    too_many="Kısa sürede çok sayıda oturum açma isteği açtınız. Birkaç dakika bekleyip bağlantıyı yeniden açın.\n\n"
    "Bu tür bağlantıları size başkası gönderiyorsa açmayın.",
    private_only="Lütfen benimle özel bir sohbet açın: oturum açma isteklerini yalnızca orada yanıtlıyorum.",
)

_UZBEK: Final = Texts(
    context=context_texts.CONTEXT_UZBEK,
    control=control_texts.CONTROL_UZBEK,
    phone=phone_texts.PHONE_UZBEK,
    confirm_button="Tasdiqlash",
    cancel_button="Bekor qilish",
    prompt="{project} tizimiga kirasizmi?\n\n{context}So‘rov vaqti: {age}.\n\n{choose}Agar buni siz boshlamagan bo‘lsangiz, “{cancel}” tugmasini bosing.",
    choose_code="Sahifa ko‘rsatayotgan sonni tanlang. Agar u yerda son bo‘lmasa, “{cancel}” tugmasini bosing.",
    just_now="hozirgina",
    seconds_ago="{n} soniya oldin",
    minutes_ago="{n} daqiqa oldin",
    confirmed="Siz {project} tizimiga kirishni tasdiqladingiz.\n{when}\n\nBoshlagan joyingizga qaytishingiz mumkin.",
    cancelled="Siz {project} tizimiga kirishni bekor qildingiz.\n{when}\n\nKirish amalga oshirilmadi.",
    mismatched="Bu sahifa ko‘rsatayotgan son emas, shuning uchun {project} tizimiga kirish bekor qilindi.\n{when}\n\n"
    "Agar buni siz boshlagan bo‘lsangiz, u yerda qaytadan boshlang. Agar havolani sizga kimdir yuborgan bo‘lsa, uni boshqa ochmang.",
    expired="{project} tizimiga kirish so‘rovining muddati tugadi. Kirish amalga oshirilmadi.\n\nKirish uchun qaytadan boshlang.",
    confirmed_notice="Tasdiqlandi: {when}",
    cancelled_notice="Bekor qilindi: {when}",
    mismatched_notice="Noto‘g‘ri son. Bekor qilindi: {when}",
    expired_notice="Bu so‘rovning muddati tugadi. Kirish uchun qaytadan boshlang.",
    foreign="Bu so‘rov boshqa foydalanuvchiga tegishli. O‘zingiz kirish uchun sayt yoki ilovada qaytadan boshlang.",
    unknown="Bu so‘rov noma’lum yoki endi amal qilmaydi. Kirish uchun sayt yoki ilovada qaytadan boshlang.",
    stale_button="Bu tugma endi ishlamaydi. Kirish uchun havolani qayta oching. Boshqa ishlar uchun buyruqni qayta yuboring.",
    help="Men sizga sayt va ilovalarga parolsiz kirishga yordam beraman.\n\n"
    "U yerda messenjer orqali kirishni tanlang va ko‘rsatilgan havolani oching yoki kodni skanerlang. "
    "Shundan so‘ng men shu yerda tasdiqlashingizni so‘rayman.",
    too_many="Siz qisqa vaqt ichida ko‘p kirish so‘rovlarini ochdingiz. Bir necha daqiqa kutib, havolani qayta oching.\n\n"
    "Agar bunday havolalarni sizga boshqa kishi yuborayotgan bo‘lsa, ularni ochmang.",
    private_only="Iltimos, men bilan shaxsiy suhbat oching: kirish so‘rovlariga faqat o‘sha yerda javob beraman.",
)

LANGUAGES: Final[dict[str, Texts]] = {
    "en": _ENGLISH,
    "ru": _RUSSIAN,
    "uk": _UKRAINIAN,
    "es": _SPANISH,
    "pt": _PORTUGUESE,
    "fa": _PERSIAN,
    "ar": _ARABIC,
    "id": _INDONESIAN,
    "tr": _TURKISH,
    "uz": _UZBEK,
}
"""By the first part of an IETF language tag."""


def texts_for(language_code: str | None) -> Texts:
    """Return the texts for a user's `language_code`, such as `pt-br`; English when it is missing or not known."""
    return LANGUAGES.get((language_code or "").partition("-")[0].lower(), _ENGLISH)
